"""tf-idf against scikit-learn, which has the same definitions."""

import unicodedata
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import normalize

from treetop.errors import TreetopError
from treetop.features.words import corpus, tfidf, tokens, unicode
from treetop.features.words.grams import build_table, choose, count_levels
from treetop.features.words.stacking import side_by_side
from treetop.features.words.tfidf import Tfidf, fit_tfidf
from treetop.features.words.wanted import TextMemory, Wanted
from treetop.runtime.spool import Shelf
from treetop.settings.parts import Analyser

TEXTS = [
    "Der große Hund, die KATZE; straße Straße.",
    "Minä rakastan sinua, Äiti! 42 3.14 foo_bar",
    "ΟΔΟΣ Ὀδυσσεύς και ΣΟΦΟΣ σοφός",
    "漢字 かな交じり文 漢字 テスト",
    "I ❤️ emoji 👩‍👩‍👧 1️⃣ naïve café",
    "हिन्दी में लिखा हुआ",
    "",
    "   ",
    "the cat and the dog and the cat and the bird",
    "İstanbul'da bir gün  \n\n yeni   satır",
    "the dog and der Hund",
] * 2


def slow_words(text: str) -> list[str]:
    """Runs of letters and digits with the marks that follow them, one character at a time."""
    words, word = [], ""
    for character in text.lower():
        mark = unicodedata.category(character) in ("Mn", "Mc")
        selector = "VARIATION SELECTOR" in unicodedata.name(character, "")
        if character.isalnum() or (word and mark and not selector):
            word += character
        elif word:
            words.append(word)
            word = ""
    return [*words, word] if word else words


def sklearn_twin(analyser: Analyser) -> TfidfVectorizer:
    words = analyser.unit == "word"
    return TfidfVectorizer(
        analyzer="word" if words else "char",
        tokenizer=(lambda text: [w for w in slow_words(text) if len(w) >= analyser.shortest])
        if words
        else None,
        token_pattern=None,
        lowercase=words or analyser.lowercase,
        ngram_range=analyser.ngrams,
        min_df=analyser.min_df,
        max_df=analyser.max_df,
        sublinear_tf=analyser.sublinear,
        stop_words=list(analyser.stop_words) or None,
    )


def names_of(fitted):
    """The n-grams of all features."""
    return [fitted.feature_name(feature) for feature in range(fitted.features)]


def assert_same(texts, analyser, threads=2):
    ours, X = fit_tfidf([analyser], texts, threads)
    names = names_of(ours)
    twin = sklearn_twin(analyser)
    expected = twin.fit_transform(texts)
    assert sorted(names) == sorted(twin.vocabulary_)
    columns = [twin.vocabulary_[name] for name in names]
    np.testing.assert_allclose(X.toarray(), expected[:, columns].toarray(), atol=2e-7)
    np.testing.assert_array_equal(ours.transform(texts).toarray(), X.toarray())


@pytest.mark.parametrize(
    "analyser",
    [
        Analyser(),
        Analyser(ngrams=(1, 3)),
        Analyser(ngrams=(2, 3), min_df=3),
        Analyser(ngrams=(1, 2), max_df=0.3, sublinear=True),
        Analyser(ngrams=(1, 2), min_df=0.15),
        Analyser(ngrams=(1, 2), stop_words=("the", "and")),
        Analyser(shortest=3),
        Analyser(unit="char", ngrams=(3, 3)),
        Analyser(unit="char", ngrams=(1, 5), min_df=2),
        Analyser(unit="char", ngrams=(2, 2), lowercase=False),
    ],
)
def test_values_equal_those_of_scikit_learn(analyser):
    assert_same(TEXTS, analyser)


@given(st.lists(st.text(alphabet="ab cé漢Σ ́\n_1", max_size=30), min_size=1, max_size=8))
def test_values_of_any_text_equal_those_of_scikit_learn(texts):
    if any(slow_words(text) for text in texts):
        assert_same(texts, Analyser(ngrams=(1, 2)))
    if any(texts):
        assert_same(texts, Analyser(unit="char", ngrams=(1, 3)))


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_words_of_any_text_equal_those_of_the_slow_twin(texts):
    expected = sorted({word for text in texts for word in slow_words(text)})
    if expected:
        assert sorted(names_of(fit_tfidf([Analyser()], texts, 1)[0])) == expected


def test_max_features_keeps_the_most_frequent_in_the_corpus():
    texts = ["a a a b", "b c", "c d", "b"]
    assert set(names_of(fit_tfidf([Analyser(max_features=2)], texts)[0])) == {"a", "b"}


def test_features_are_numbered_by_document_frequency():
    names = names_of(fit_tfidf([Analyser()], ["x y", "y", "y z", "z"])[0])
    assert names == ["y", "z", "x"]


def test_stacked_analysers_are_a_feature_union_scaled_to_length_one():
    words, characters = Analyser(ngrams=(1, 2)), Analyser(unit="char", ngrams=(3, 3))
    _, X = fit_tfidf([words, characters], TEXTS)
    union = FeatureUnion([("w", sklearn_twin(words)), ("c", sklearn_twin(characters))])
    expected = normalize(union.fit_transform(TEXTS))
    assert X.shape == expected.shape
    np.testing.assert_allclose((X @ X.T).toarray(), (expected @ expected.T).toarray(), atol=1e-6)
    lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1 if hasattr(X, "A1") else None
    assert lengths is None or set(np.round(lengths, 6)) <= {0.0, 1.0}


@pytest.mark.parametrize("unit", ["word", "char"])
def test_an_analyser_with_first_reads_only_the_beginning(unit):
    whole, cut = Analyser(unit=unit, ngrams=(1, 2)), Analyser(unit=unit, ngrams=(1, 2), first=12)
    ours, X = fit_tfidf([cut], TEXTS)
    twin, expected = fit_tfidf([whole], [tokens.cut_at_word(text, 12) for text in TEXTS])
    assert names_of(ours) == names_of(twin)
    np.testing.assert_array_equal(X.toarray(), expected.toarray())
    np.testing.assert_array_equal(ours.transform(TEXTS).toarray(), X.toarray())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("short", "short"),
        ("exactly ten", "exactly"),
        ("two words x", "two words"),
        ("unbrokenline", "unbrokenli"),
        ("ends here. yes", "ends here."),
        ("", ""),
    ],
)
def test_a_beginning_ends_with_a_whole_word(text, expected):
    assert tokens.cut_at_word(text, 10) == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_side_by_side_equals_hstack(rng, threads):
    parts = [sp.random(50, width, 0.1, "csr", np.float32, rng) for width in (30, 7, 90)]
    parts = [normalize(part) for part in parts]
    expected = sp.hstack(parts).toarray()
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    stacked = side_by_side(parts, threads)
    np.testing.assert_allclose(stacked.toarray(), expected, atol=1e-6)
    assert stacked.has_sorted_indices


def test_streams_spools_and_threads_do_not_change_the_features(monkeypatch):
    analyser = Analyser(ngrams=(1, 3), min_df=2)
    _, expected = fit_tfidf([analyser], TEXTS * 20, 1)
    monkeypatch.setattr(corpus, "BLOCK_BYTES_PER_THREAD", 100)
    few = TextMemory(kept=500, pairs=10)
    spool = corpus.Spool(Shelf(100))
    block = tokens.Block(np.arange(1000, dtype=np.int32), np.array([1000]), 0)
    spool.append(block)
    spool.append(block)
    assert all((kept.ids == block.ids).all() for kept in spool.blocks)
    streamed, X = fit_tfidf([analyser], (text for text in TEXTS * 20), 3, few)
    np.testing.assert_array_equal(X.toarray(), expected.toarray())
    analysers = [analyser, Analyser(first=9)]
    both, twin = (fit_tfidf(analysers, (t for t in TEXTS * 20), n, few)[1] for n in (3, 1))
    np.testing.assert_array_equal(both.toarray(), twin.toarray())
    monkeypatch.setattr(tfidf, "blocks_of_text", lambda texts: tokens.blocks_of_text(texts, 300))
    blocks = list(streamed.transform_blocks(text for text in TEXTS * 20))
    assert len(blocks) == 57
    assert sum(block.shape[0] for block in blocks) == len(TEXTS) * 20


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("ngrams", [(1, 2), (2, 3), (3, 3), (1, 4)])
@pytest.mark.parametrize("limits", [(1, 1.0), (2, 0.6)])
@pytest.mark.parametrize("features", [1, 7, 30])
def test_forgetting_rare_ngrams_early_does_not_change_the_chosen_ones(unit, ngrams, limits, features):
    words = np.minimum(np.random.default_rng(3).zipf(1.6, (60, 20)), 30)
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    analyser = Analyser(unit, ngrams, *limits)
    wanted = Wanted.by(replace(analyser, max_features=features), len(texts))
    table = tfidf.empty_table(analyser)
    (spool,), _ = corpus.read_corpus(texts, [table], 1, 1 << 20)
    args = spool.blocks, table.known
    every = count_levels(*args, wanted._replace(features=None), 1, TextMemory())
    expected = named(every, choose(every, wanted), table)
    for threads, memory in ((1, TextMemory()), (3, TextMemory(100, 5))):
        few = count_levels(*args, wanted, threads, memory)
        assert named(few, choose(few, wanted), table) == expected
    assert all(own.tokens.size <= all_.tokens.size for own, all_ in zip(few, every, strict=True))


def named(levels, chosen, table):
    """The tokens of each feature."""
    _, new_ids, spelling = build_table(table, levels, chosen)
    old = np.flatnonzero(new_ids >= 0)
    return [[int(old[token]) for token in row if token >= 0] for row in spelling]


def test_from_arrays_restores_the_vectorizer():
    analysers = (Analyser(ngrams=(1, 2)), Analyser(unit="char", ngrams=(3, 3)))
    ours, X = fit_tfidf(analysers, TEXTS)
    restored = Tfidf.from_arrays(analysers, ours.arrays())
    np.testing.assert_array_equal(restored.transform(TEXTS).toarray(), X.toarray())


def test_unknown_words_give_an_empty_row():
    row = fit_tfidf([Analyser()], ["a b"])[0].transform(["zzz", "a"])
    assert row[0].nnz == 0
    assert row[1].nnz == 1


def test_a_fifty_megabyte_document_is_read():
    _, X = fit_tfidf([Analyser()], ["word " * 10_000_000, "other word"])
    assert X.shape == (2, 2)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["ok", 3], "document 1 is of type int, not a string"),
        (["", " "], "no feature is left"),
    ],
)
def test_errors_name_the_document_and_the_problem(texts, message):
    with pytest.raises(TreetopError, match=message):
        fit_tfidf([Analyser()], texts)


def test_the_tables_of_the_package_equal_those_of_python():
    with np.load(unicode.FILE) as tables:
        kept = {name: tables[name] for name in tables.files}
    if unicodedata.unidata_version == "14.0.0":
        for name, values in unicode.tables_of_python().items():
            np.testing.assert_array_equal(kept[name], values)
    classes = unicode.character_classes()
    assert classes[ord("a")] == classes[ord("漢")] == classes[ord("9")] == 1
    assert classes[ord("_")] == 0
    assert unicode.lower_case()[ord("Ä")] == ord("ä")
