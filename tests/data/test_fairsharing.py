"""The demo's records: read without importing the package, split by name, no near-duplicates."""

import importlib.util
import json

import pytest

from tests.fairsharing import install, records
from treetop.data.fairsharing import (
    FairSharingRecord,
    load_fairsharing,
    near_duplicates,
    records_file,
    registry_records,
)
from treetop.errors import TreetopError

SENTENCE = "This database lists every known volcano of the southern islands with its last eruption"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a stand-in for bioregistry with the records it is called with."""

    def install_records(content, **options):
        install(tmp_path, content, **options)
        monkeypatch.syspath_prepend(tmp_path)

    return install_records


def record(name, description, *keywords):
    return {"name": name, "description": description, "keywords": list(keywords)}


def test_records_become_texts_with_the_name_first_and_labels(package):
    package({"a": record("GeoBase", " Maps\n of  rocks. ", "Geology", "map", "Geology")})
    loaded = load_fairsharing()
    [split] = [one for one in loaded.dataset.splits.values() if len(one)]
    assert split.texts == ["GeoBase\nMaps of rocks."]
    assert split.labels == [["Geology", "map"]]
    assert loaded.version == "9.9"


def test_a_record_stays_in_its_split_when_others_come_and_descriptions_change(package):
    early = records(100)
    later = {key: {**entry, "description": f"new {key}"} for key, entry in records(200).items()}
    package(early)
    first = titles(load_fairsharing())
    records_file().write_text(json.dumps(later), "utf-8")
    second = titles(load_fairsharing())
    assert (len(first["train"]), len(first["test"])) == (76, 24)
    assert first["train"] < second["train"]
    assert first["test"] < second["test"]


def titles(loaded):
    """The records' names, as a set per split."""
    splits = loaded.dataset.splits.items()
    return {name: {text.partition("\n")[0] for text in split.texts} for name, split in splits}


def test_near_duplicates_and_records_without_keywords_are_left_out_and_counted(package):
    package(
        [
            record("A", SENTENCE, "volcano"),
            record("B", SENTENCE + " and height", "volcano", "height"),
            record("C", "A catalogue of all the stars that were seen in spring", "star"),
            record("D", "A list without any keyword at all, kept by nobody"),
            record("E", "", "nothing is said of it"),
        ]
    )
    counts = load_fairsharing().counts
    assert counts["train"] + counts["test"] == 2
    assert (counts["near_duplicates"], counts["without_keywords"]) == (1, 1)
    assert (counts["labels"], counts["labels_per_record"]) == (2, 1.0)


def test_similarity_is_the_share_of_common_four_word_sequences():
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]

    def similar(length):
        """Whether the first `length` words are a near-duplicate of all eight."""
        texts = (" ".join(words), " ".join(words[:length]))
        pair = [FairSharingRecord("name", text, ["label"]) for text in texts]
        first, second = near_duplicates(pair)
        return first == second

    # Eight words have five sequences; six have three of them, five have two.
    assert similar(6)
    assert not similar(5)


@pytest.mark.parametrize(
    "fields",
    [
        {"keywords": ["gene", "cell"]},
        {"subjects": ["gene"], "domains": ["cell"]},
        {"subjects": [{"label": "gene"}], "user_defined_tags": [{"name": "cell"}], "domains": None},
    ],
)
def test_other_versions_of_the_file_name_their_keywords_differently(tmp_path, fields):
    (tmp_path / "records.json").write_text(json.dumps([{"name": "N", **fields}]))
    [read] = registry_records(tmp_path / "records.json")
    assert read.keywords == ["gene", "cell"]


def test_the_file_is_found_where_other_versions_keep_it(package):
    package(records(8), place="data/fairsharing_records.json")
    assert load_fairsharing().counts["labels"] == 5


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        ("{", "external/fairsharing/processed.json", "not readable as JSON"),
        ("[1]", "external/fairsharing/processed.json", "expected an object or a list of records"),
        ("{}", "other.json", "bioregistry 9.9 is installed without its FAIRsharing records"),
    ],
)
def test_a_damaged_package_is_an_error_that_names_it(package, content, place, message):
    package(content, place=place)
    with pytest.raises(TreetopError, match=message) as error:
        load_fairsharing()
    assert "install" in str(error.value)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TreetopError) as error:
        load_fairsharing()
    assert str(error.value) == (
        "the demo's records require an extra package (bioregistry is not installed): "
        "pip install 'treetop-xmc[demo]'"
    )
