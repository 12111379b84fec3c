"""Model folders from a stranger, with checksums that fit: each is refused in one line."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import treetop
from tests.slow_weights import slow_weights
from tests.tiny import word_corpus
from treetop.errors import TreetopError
from treetop.features.words.tokens import check_table
from treetop.runtime.arrays import read_arrays, write_arrays
from treetop.runtime.checking import Column, check_arrays

FOLDERS = Path(__file__).parents[1] / "folders"
RUNTIME = treetop.Runtime(precision="fp32", device="cpu")


@pytest.fixture
def folder_of(tmp_path):
    """Copies a folder of an earlier version, which tests may change."""

    def copy(name):
        return Path(shutil.copytree(FOLDERS / name, tmp_path / name))

    return copy


def seal(folder):
    """Enter the sizes and checksums of the files of a folder, as a stranger can."""
    config = json.loads((folder / "config.json").read_text())
    for name in config["files"]:
        content = (folder / name).read_bytes()
        config["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "config.json").write_text(json.dumps(config))


def change_array(folder, name, change):
    """Change an array, named as in ``ranker/0.rows``, by a function that returns the new one."""
    file, _, key = name.partition("/")
    path = folder / f"{file}.safetensors"
    arrays = {name: values.copy() for name, values in read_arrays(path).items()}
    arrays[key] = change(arrays[key])
    path.unlink()
    write_arrays(path, arrays)
    seal(folder)


def change_config(folder, change):
    """Change config.json by a function that changes the object."""
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def assert_refused(folder, message):
    with pytest.raises(TreetopError, match=message) as error:
        treetop.load(folder, runtime=RUNTIME).predict(["red apple old boat"], k=3)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


def set_to(position, value):
    def change(array):
        array[position] = value
        return array

    return change


def first_listed(rows):
    """The place of a row that leads to pairs."""
    return int(np.flatnonzero(rows[:, 1] >= 0)[0])


def swapped(array):
    return array[::-1].copy()


ARRAYS = [
    ("tree", "tree/0.label_of", set_to(0, 2**62), "label_of holds a number twice, or one"),
    ("tree", "tree/0.label_of", set_to(0, -1), "label_of holds a number twice, or one"),
    ("tree", "tree/0.label_of", lambda a: np.zeros_like(a), "label_of holds a number twice"),
    ("tree", "tree/0.label_of", lambda a: a.astype(np.int32), "label_of is of type int32"),
    ("tree", "tree/0.label_of", lambda a: a[:-1], r"label_of has 117 entries instead of 118"),
    ("tree", "tree/0.child_ptr.1", set_to(1, 10**6), "child_ptr.1 falls"),
    ("tree", "tree/0.child_ptr.1", set_to(0, 1), "child_ptr.1 does not lead from 0"),
    ("tree", "tree/0.child_ptr.0", lambda a: a[:0], "child_ptr.0 has 0 entries instead of 2"),
    ("tree", "tree/train_counts", set_to(0, -5), "train_counts holds -5"),
    ("tree", "tree/train_counts", lambda a: a[:9], "train_counts has 9 entries instead of 118"),
    ("tree", "ranker/0.row_ptr", set_to(3, 2**40), "row_ptr falls"),
    ("tree", "ranker/0.row_ptr", lambda a: a[:-1], "row_ptr"),
    ("tree", "ranker/0.rows", set_to((0, 0), 10**9), "rows holds a cluster that does not exist"),
    ("tree", "ranker/0.rows", set_to((0, 0), -3), "rows holds a cluster that does not exist"),
    ("tree", "ranker/0.rows", set_to((slice(None), 0), 0), "clusters that do not ascend"),
    ("tree", "ranker/0.rows", set_to((0, 1), 2**31 - 1), "rows leads to weights that are not there"),
    ("tree", "ranker/0.rows", set_to((0, 1), -(2**31)), "rows leads to weights that are not there"),
    ("tree", "ranker/0.rows", lambda a: a[:, :1], "rows has 1 entries instead of 2"),
    ("tree", "ranker/0.pairs", set_to((0, 0), 2**31 - 1), "rows leads to weights"),
    ("tree", "ranker/0.pairs", set_to((1, 0), 2**30), "weights are of a child that their cluster"),
    ("tree", "ranker/0.pairs", set_to((1, 0), -1), "weights are of a child that their cluster"),
    ("tree", "ranker/0.pairs", set_to((1, 1), 0x7F800000), "weights hold NaN or infinity"),
    ("tree", "ranker/0.pairs", lambda a: a[:-1], "rows leads to weights that are not there"),
    ("tree", "ranker/0.full", lambda a: a[:-1], "rows leads to weights that are not there"),
    ("tree", "ranker/0.full", set_to((0, 0), np.nan), "full holds NaN or infinity"),
    ("tree", "ranker/0.biases", set_to(2, np.inf), "biases holds NaN or infinity"),
    ("tree", "ranker/0.biases", lambda a: a[:-1], "biases has"),
    ("tree", "ranker/0.child_ptr", set_to(1, 5), "are not those of the label tree"),
    ("tree", "ranker/0.level_ptr", set_to(1, 2), "are not those of the label tree"),
    ("wordvectors", "ranker/0.dense", lambda a: a[:-1], "dense has"),
    ("wordvectors", "center/center", lambda a: a[:-1], "center has"),
    ("tree", "tfidf/0.token_keys", lambda a: a | np.uint64(1), "too full to be searched"),
    ("tree", "tfidf/0.token_keys", lambda a: a[:-1], "token_values has"),
    ("tree", "tfidf/0.token_values", lambda a: np.full_like(a, 2**31 - 1), "the table token holds"),
    ("tree", "tfidf/0.gram_values", lambda a: np.full_like(a, -9), "the table gram holds"),
    ("tree", "tfidf/0.feature_of", set_to(0, 2**30), "feature_of holds 1,073,741,824"),
    ("tree", "tfidf/0.idf", set_to(0, np.nan), "idf holds NaN"),
    ("tree", "tfidf/0.spelling", set_to((0, 0), 10**6), "spelling holds"),
    ("tree", "tfidf/0.name_ends", set_to(0, 10**9), "the ends of names decrease"),
    ("tree", "tfidf/0.names", lambda a: a[:-1], "exceed the last name"),
    ("forest", "documents/indices", set_to(0, 10**6), "indices holds 1,000,000"),
    ("forest", "documents/indptr", set_to(1, -1), "indptr falls"),
    ("forest", "documents/labels", set_to(0, 118), "labels holds 118"),
    ("forest", "documents/text_ends", lambda a: a[:-1], "one entry per document, or none"),
    ("forest", "documents/columns", set_to(0, 1), "columns is 1 instead of"),
    ("compressed", "ranker/0.packed.children", set_to(0, 65535), "children holds a child"),
    ("compressed", "ranker/0.packed.features", swapped, "features"),
    ("compressed", "ranker/0.packed.features_in_all", set_to(0, 10**12), "features_in_all holds"),
    ("compressed", "ranker/0.packed.sizes", set_to(0, 60_000), "sizes do not add up"),
    ("compressed", "ranker/0.packed.cluster_sizes", set_to(0, 2**40), "cluster_sizes holds"),
    ("compressed", "ranker/0.packed.scales", set_to(0, 3e38), "scales holds one that makes"),
    ("compressed", "ranker/0.packed.values", lambda a: a.astype(np.float16), "values is of type"),
    ("pecos-linear", "tfidf/grams", set_to(0, 10**6), "grams holds 1,000,000"),
    ("pecos-linear", "tfidf/sizes", set_to(0, -1), "sizes holds -1"),
    ("pecos-linear", "tfidf/sizes", set_to(0, 3), "do not add up"),
    ("pecos-linear", "tfidf/idf", lambda a: a[:-1], "sizes has"),
]


@pytest.mark.parametrize(
    ("name", "array", "change", "message"), ARRAYS, ids=[f"{a[1]}-{n}" for n, a in enumerate(ARRAYS)]
)
def test_an_array_that_would_mislead_a_kernel_is_refused(folder_of, name, array, change, message):
    folder = folder_of(name)
    change_array(folder, array, change)
    assert_refused(folder, message)


def set_fact(name, value):
    return lambda config: config.__setitem__(name, value)


def set_setting(name, value):
    return lambda config: config["settings"].__setitem__(name, value)


CONFIGS = [
    ("tree", set_setting("beam", -1), "beam is -1: it must be at least 1"),
    ("tree", set_setting("beam", 2**70), "must fit into 64 bits"),
    ("tree", set_setting("beam", [1]), "must be of type int"),
    ("tree", set_setting("ngrams", "word:1-3"), "spelling has"),
    ("tree", set_setting("score_transform", "evil"), "choose one of"),
    ("tree", set_fact("settings", []), "settings must be of type dict"),
    ("tree", set_fact("trees", 3), "trees must be of type list"),
    ("tree", set_fact("trees", []), "holds no tree"),
    ("tree", set_fact("trees", ["4"] * 2), "the label tree is empty"),
    ("tree", set_fact("asked", {"beam": "wide"}), "beam is 'wide'"),
    ("tree", set_fact("feature_widths", [10**15, 0]), "feature_widths is"),
    ("tree", set_fact("feature_widths", [1.5, 0]), "feature_widths is"),
    ("tree", set_fact("feature_widths", [7, 0]), "row_ptr has"),
    ("tree", set_fact("text", "evil"), 'text is "evil"'),
    ("tree", set_fact("text", None), "text is null"),
    ("tree", set_fact("storage", "int4"), "this treetop knows float32, float16, int8"),
    ("tree", set_fact("label_type", "complex"), "this treetop knows str"),
    ("tree", set_fact("label_type", "int"), "a label that is not of type int"),
    ("tree", set_fact("train_documents", "many"), "train_documents must be a number"),
    ("tree", set_fact("treetop", "2"), "damaged, or not the config"),
    ("tree", set_fact("treetop", 4), "upgrade treetop"),
    ("tree", set_fact("metrics", 1), "damaged, or not the config"),
    ("tree", set_fact("files", {"../x": {"bytes": 0, "sha256": ""}}), "damaged, or not the config"),
    ("tree", set_fact("files", {"labels.txt": {"bytes": "1"}}), "damaged, or not the config"),
    ("tree", set_fact("model", ["xr-linear"]), "which this treetop does not know"),
    ("ensemble", set_fact("members", ["xr-linear"] * 3), "weights must be one number"),
    ("ensemble", set_fact("weights", [-1, 2]), "weights must be one number"),
    ("ensemble", set_fact("weights", [float("nan"), 2]), "weights must be one number"),
    ("ensemble", set_fact("combine", 7), "combine is 7"),
]


@pytest.mark.parametrize(("name", "change", "message"), CONFIGS, ids=[c[2] for c in CONFIGS])
def test_a_config_that_says_the_impossible_is_refused(folder_of, name, change, message):
    folder = folder_of(name)
    change_config(folder, change)
    assert_refused(folder, message)


def header_changed(change):
    """Rewrites the header of ranker.safetensors."""

    def rewrite(content):
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        change(header)
        text = json.dumps(header).encode()
        text += b" " * (-(len(text) + 8) % 64)
        return len(text).to_bytes(8, "little") + text + content[start:]

    return rewrite


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda content: b"",
        lambda content: content[:7],
        lambda content: (2**63).to_bytes(8, "little") + content[8:],
        lambda content: content + b"\0" * 8,
        lambda content: content[:8] + b"[" * 4000 + content[4008:],
        header_changed(lambda header: header["0.rows"].update(data_offsets=[-8, 0])),
        header_changed(lambda header: header["0.rows"].update(data_offsets=[0, 2**62])),
        header_changed(lambda header: header["0.rows"].update(shape=[2**31, 2**31, 4])),
        header_changed(lambda header: header["0.rows"].update(shape=[1.5, 2])),
        header_changed(lambda header: header["0.rows"].update(dtype="OBJECT")),
        header_changed(lambda header: header["0.rows"].update(header["0.pairs"])),
        header_changed(lambda header: header.update(more=[])),
    ],
)
def test_a_header_that_does_not_fit_its_file_is_refused(folder_of, rewrite):
    folder = folder_of("tree")
    path = folder / "ranker.safetensors"
    path.write_bytes(rewrite(path.read_bytes()))
    seal(folder)
    assert_refused(folder, r"ranker.safetensors: .*not a readable safetensors file")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("labels.txt", b"one\ntwo\n", "2 lines instead of 118"),
        ("labels.txt", b"\xff\xfe\n" * 118, "a label that is not of type str"),
        ("config.json", b"[" * 100_000, "damaged, or not the config"),
        ("config.json", b"\xff", "damaged, or not the config"),
    ],
)
def test_a_text_file_that_does_not_fit_is_refused(folder_of, file, content, message):
    folder = folder_of("tree")
    (folder / file).write_bytes(content)
    if file != "config.json":
        seal(folder)
    assert_refused(folder, message)


def test_an_ensemble_whose_members_have_other_labels_is_refused(folder_of):
    folder = folder_of("ensemble")
    labels = folder / "member-1" / "labels.txt"
    labels.write_bytes(labels.read_bytes().replace(b"red", b"RED", 1))
    seal(folder)
    assert_refused(folder, "has other labels than member-0")


def test_large_files_are_checked_too_although_their_checksums_are_not(folder_of, monkeypatch):
    folder = folder_of("tree")
    monkeypatch.setattr(treetop.model.layout, "VERIFY_BYTES", 0)
    change_array(folder, "ranker/0.rows", set_to((0, 1), 2**31 - 1))
    assert_refused(folder, "rows leads to weights that are not there")


@pytest.mark.parametrize("beam", [0, -1])
def test_a_beam_below_one_is_an_error(beam):
    model = treetop.load(FOLDERS / "tree")
    with pytest.raises(TreetopError, match=f"beam is {beam}: it must be at least 1"):
        model.predict(["red apple"], beam=beam)


def test_a_beam_wider_than_the_tree_takes_no_memory():
    model = treetop.load(FOLDERS / "tree")
    assert model.predict(["red apple"], beam=10**15) == model.predict(["red apple"], beam=1000)


def older_cells(arrays):
    """Feature, cluster, child and bits of every weight of format 2, slowly."""
    row_ptr, rows, pairs = arrays["row_ptr"], arrays["rows"].tolist(), arrays["pairs"].tolist()
    full = arrays["full"].view(np.int32)
    for feature in range(row_ptr.size - 1):
        for cluster, at in rows[row_ptr[feature] : row_ptr[feature + 1]]:
            if at >= 0:
                for child, bits in pairs[at + 1 : at + 1 + pairs[at][0]]:
                    yield feature, cluster, child, bits
            else:
                count = int(np.diff(arrays["child_ptr"])[cluster])
                values = full[-1 - at :].ravel()[:count]
                for child in np.flatnonzero(values).tolist():
                    yield feature, cluster, child, int(values[child])


def test_weights_of_format_2_are_converted_by_several_threads_as_by_one(folder_of):
    folder = folder_of("tree")
    arrays = read_arrays(folder / "ranker.safetensors")
    expected = sorted(older_cells({name.removeprefix("0."): a for name, a in arrays.items()}))
    assert any(listed >= 0 for listed in arrays["0.rows"][:, 1])
    assert len(arrays["0.full"])
    for threads in (1, 3):
        model = treetop.load(folder, runtime=treetop.Runtime(threads=threads))
        found = list(slow_weights(model.rankers_[0].weights))
        bits = [int(np.float32(cell[-1]).view(np.int32)) for cell in found]
        found = [(*cell[:3], own) for cell, own in zip(found, bits, strict=True) if cell[-1] != 0]
        assert found == expected


def first_row(kind):
    """Change the first row of a kind (0: a list, 1: full vectors, -1: a single weight)."""

    def place(rows):
        kinds = np.where(rows[:, 1] < 0, -1, rows[:, 1] & 1)
        return int(np.flatnonzero(kinds == kind)[0])

    return place


def row_set_to(kind, column, value):
    place = first_row(kind)

    def change(rows):
        rows[place(rows), column] = value
        return rows

    return change


MISLEADING = [
    ("0.starts", set_to((3, 0), 2**40), "starts does not lead through rows and cells"),
    ("0.starts", set_to((-1, 1), 5), "starts does not lead through rows and cells"),
    ("0.starts", set_to((0, 0), 1), "starts does not lead through rows and cells"),
    ("0.starts", set_to((0, 0), -1), "starts holds -1"),
    ("0.rows", lambda a: a[:-1], "starts does not lead"),
    ("0.rows", row_set_to(0, 0, 10**9), "rows holds a cluster that does not exist"),
    ("0.rows", row_set_to(1, 0, -3), "rows holds a cluster that does not exist"),
    ("0.rows", set_to((slice(None), 0), 0), "clusters that do not ascend"),
    ("0.rows", row_set_to(0, 1, 2**31 - 2), "rows leads to weights that are not there"),
    ("0.rows", row_set_to(1, 1, 2**31 - 1), "rows leads to weights that are not there"),
    ("0.cells", lambda a: a[:-1], "starts does not lead"),
    ("0.cells", lambda a: np.full_like(a, 0xFFFF), "rows leads|hold NaN"),
    ("0.cells", lambda a: np.full_like(a, 0x7F80), "rows leads|hold NaN|of a child"),
    ("0.cells", lambda a: np.zeros_like(a), "rows leads to weights that are not there"),
    ("0.form", set_to(0, 3), "form holds 3"),
    ("0.form", set_to(1, 0), "form holds 0"),
    ("0.form", lambda a: 3 - a, "rows leads to weights"),
]
SINGLE = [
    ("0.rows", row_set_to(-1, 1, -(2**31) + (0x7FFF << 16)), "of a child that their cluster"),
    ("0.rows", row_set_to(-1, 1, -(2**31) + 0x7F80), "weights hold NaN or infinity"),
    ("0.rows", row_set_to(-1, 1, -1), "of a child that their cluster|hold NaN"),
]


@pytest.fixture(scope="module")
def compact(tmp_path_factory):
    """A model folder of the present format, with weights of this type."""

    def make(weight_type):
        folder = tmp_path_factory.mktemp("compact") / weight_type
        settings = {"tree": "3-L", "trees": 1, "prune_below": 0.1, "weight_type": weight_type}
        treetop.XRLinear(**settings).fit(*word_corpus()).save(folder)
        return folder

    return {name: make(name) for name in ("float32", "bfloat16")}


@pytest.mark.parametrize(
    ("weight_type", "change"),
    [
        *(("float32", change) for change in MISLEADING),
        *(("bfloat16", change) for change in (*MISLEADING, *SINGLE)),
    ],
)
def test_compact_weights_that_would_mislead_a_kernel_are_refused(
    compact, tmp_path, weight_type, change
):
    name, function, message = change
    folder = Path(shutil.copytree(compact[weight_type], tmp_path / "m"))
    change_array(folder, f"ranker/{name}", function)
    assert_refused(folder, message)


def test_every_stretch_of_a_long_array_is_checked(rng):
    values = np.sort(rng.integers(0, 1000, 300_000))
    values[[0, -1]] = 0, 1000
    columns = {"values": Column("int64", ("all",), ends_at="end")}
    for threads in (1, 4):
        assert check_arrays({"values": values}, columns, {"end": 1000}, threads)
    for place in (65_535, 65_536, 131_072, 299_990):
        wrong = values.copy()
        wrong[place + 1 :] -= wrong[place + 1] - wrong[place] + 1
        wrong[-1] = 1000
        with pytest.raises(TreetopError, match="values falls"):
            check_arrays({"values": wrong}, columns, {"end": 1000})


def test_a_hash_table_with_a_long_run_is_refused():
    keys, values = np.zeros(1 << 14, np.uint64), np.zeros(1 << 14, np.int32)
    check_table("token", keys, values, -1, 1)
    keys[:2000] = keys[-2000:] = 1
    check_table("token", keys, values, -1, 1)
    keys[:3000] = keys[-2000:] = 1
    with pytest.raises(TreetopError, match="too full"):
        check_table("token", keys, values, -1, 1)


def test_huge_values_of_kept_documents_give_finite_similarities(folder_of):
    folder = folder_of("forest")
    change_array(folder, "documents/data", lambda values: np.full_like(values, 3e38))
    explanation = treetop.load(folder).explain("red apple", k=1)[0]
    assert explanation.neighbours
    assert all(np.isfinite(neighbour.similarity) for neighbour in explanation.neighbours)


def test_the_name_of_an_unknown_setting_is_cut_in_the_message(folder_of):
    folder = folder_of("tree")
    change_config(folder, lambda config: config["settings"].update({"m" * 5000: 1}))
    assert_refused(folder, "unknown setting '" + 60 * "m" + "'")
