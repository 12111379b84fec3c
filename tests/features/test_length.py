import pytest

import treetop
from treetop.settings.length import LOOKED_AT, with_ngrams
from treetop.settings.notation import LONG_TEXTS, SHORT_TEXTS, TITLES
from treetop.settings.schema import LinearSettings

TITLE, SHORT, LONG = "a few words", "some words " * 20, "many words " * 80


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([TITLE] * 5, TITLES),
        ([SHORT] * 5, SHORT_TEXTS),
        ([LONG] * 5, LONG_TEXTS),
        ([SHORT, LONG, LONG], LONG_TEXTS),
        ([], TITLES),
        ([SHORT] * LOOKED_AT + [LONG] * 9999, SHORT_TEXTS),
    ],
)
def test_what_is_counted_depends_on_how_long_texts_are(texts, expected):
    settings, same = with_ngrams(LinearSettings(), texts)
    assert settings.ngrams == expected
    assert same is texts


def test_a_stream_loses_nothing():
    texts = [f"text {number}" for number in range(LOOKED_AT + 7)]
    _, stream = with_ngrams(LinearSettings(), (text for text in texts))
    assert list(stream) == texts


def test_a_choice_stays():
    assert with_ngrams(LinearSettings(ngrams="char:3"), [LONG])[0].ngrams == "char:3"


def test_a_model_remembers_what_was_chosen(tmp_path):
    texts = [f"{word} " * 200 + word for word in ("red", "green", "blue", "pear")] * 5
    model = treetop.XRLinear().fit(texts, [[text[:3]] for text in texts])
    assert model.settings_.ngrams == LONG_TEXTS
    assert model.get_params()["ngrams"] == "auto"
    model.save(tmp_path / "m")
    again = treetop.load(str(tmp_path / "m"))
    assert again.predict(texts[:4], 1) == model.predict(texts[:4], 1)
    assert again.settings_.ngrams == LONG_TEXTS
