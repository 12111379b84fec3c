"""Division into splits: reproducible, in groups, stratified; several data sets as one."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.data import Split, open_data
from treetop.data.joining import contradicting_texts, joined
from treetop.data.partition import partition
from treetop.errors import TreetopError

SHARES = {"train": 0.7, "dev": 0.1, "test": 0.2}


def split_of(count):
    return Split([f"text {n}" for n in range(count)], [[f"label {n % 7}"] for n in range(count)])


def names_of(split, parts):
    return {name: {split.texts[row] for row in rows} for name, rows in parts.items()}


def test_every_document_is_in_one_split_and_the_sizes_are_as_asked():
    parts = partition(split_of(1000), SHARES)
    assert {name: rows.size for name, rows in parts.items()} == {"train": 700, "dev": 100, "test": 200}
    assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(1000))


def test_the_order_of_the_documents_and_the_process_do_not_matter():
    split = split_of(200)
    here = names_of(split, partition(split, SHARES, seed=3))
    reversed_split = split.rows(np.arange(199, -1, -1))
    assert names_of(reversed_split, partition(reversed_split, SHARES, seed=3)) == here
    assert names_of(split, partition(split, SHARES, seed=4)) != here
    code = (
        "from tests.data.test_partition import *; s = split_of(200);"
        "print(sorted(names_of(s, partition(s, SHARES, seed=3))['dev']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(sorted(here["dev"]))


@pytest.mark.parametrize("stratify", [False, True])
def test_groups_stay_together_and_so_do_equal_documents(stratify):
    split = split_of(300)
    groups = [f"journal {n // 10}" for n in range(300)]
    parts = partition(split, SHARES, groups=groups, stratify=stratify)
    found = [{groups[row] for row in rows} for rows in parts.values()]
    assert sum(map(len, found)) == 30
    twice = Split(split.texts + split.texts, split.labels + split.labels)
    again = names_of(twice, partition(twice, SHARES, stratify=stratify))
    assert sum(map(len, again.values())) == 300
    rows = sp.csr_matrix(np.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1]])
    features = Split(None, None, rows, sp.csr_matrix(np.ones((8, 1))))
    (one, other) = partition(features, {"train": 0.6, "test": 0.4}, stratify=stratify).values()
    assert not set(rows[one].indices) & set(rows[other].indices)


def test_stratified_splits_divide_rare_labels(rng):
    """Of 20 labels with ten documents each, every split of a fifth has two."""
    labels = [[f"rare {n}"] for n in range(20) for _ in range(10)] + [["common"]] * 800
    split = Split([f"text {n}" for n in range(1000)], labels)
    test = partition(split, {"train": 0.8, "test": 0.2}, stratify=True)["test"]
    counts = {name: 0 for (name,) in labels}
    for row in test:
        counts[labels[row][0]] += 1
    assert {count for name, count in counts.items() if name != "common"} == {2}
    assert counts["common"] == 160


def test_shares_that_leave_a_split_empty():
    with pytest.raises(TreetopError, match="3 documents in 3 groups: none is left for test"):
        partition(split_of(3), {"train": 0.95, "test": 0.05})


def read(tmp_path, **files):
    paths = []
    for name, content in files.items():
        paths.append(tmp_path / name.replace("__", "."))
        paths[-1].write_text(content)
    return joined([open_data(path) for path in paths], paths), paths


def test_several_data_sets_of_different_formats(tmp_path):
    correction = json.dumps({"text": "red", "labels": ["b", "c"]})
    data, _ = read(tmp_path, a__csv="text,labels\nred,a;b\nblue,c\n", corrections__jsonl=correction)
    assert data.format == "csv + jsonl"
    assert data.split("train").texts == ["red", "blue", "red"]
    assert data.split("train").labels == [["a", "b"], ["c"], ["b", "c"]]
    assert contradicting_texts(data) == 1


def test_several_matrices(tmp_path):
    data, _ = read(tmp_path, a__svm="0 1:1\n", b__svm="2 5:1\n")
    assert data.split("train").X.shape == (2, 6)
    assert data.split("train").named_labels(data.label_names) == [["0"], ["2"]]


def test_data_sets_that_do_not_fit_together(tmp_path):
    with pytest.raises(TreetopError, match=r"b.svm: has features, but .*a.csv has texts"):
        read(tmp_path, a__csv="text,labels\nred,a\n", b__svm="2 5:1\n")
    with pytest.raises(TreetopError, match=r"c.csv: some documents have labels and others have no"):
        read(tmp_path, a__csv="text,labels\nred,a\n", c__csv="text,x\nred,a\n")
