"""Files from strangers: every number is checked before it is followed, and sizes are bounded."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from treetop.data import open_data
from treetop.data.npz import load_matrix
from treetop.errors import TreetopError

MATRIX = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0]]))


def parts_of(matrix=MATRIX, **changed):
    return {
        "format": np.array(b"csr"),
        "shape": np.array(matrix.shape),
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
    } | changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": np.array([0, 2, 7])}, "indices holds a number that is not from 0 to 2"),
        ({"indices": np.array([0, -2, 1])}, "indices holds a number"),
        ({"indptr": np.array([0, 3, 2])}, "indptr does not lead"),
        ({"indptr": np.array([-1, 2, 3])}, "indptr does not lead"),
        ({"indptr": np.array([0, 2])}, "indptr does not lead"),
        ({"indptr": np.array([0, 2, 99])}, "indptr leads beyond the stored values"),
        ({"indptr": np.array([0.0, 2.0, 3.0])}, "indptr is of type float64"),
        ({"indptr": np.array(3)}, "indptr has 0 dimensions"),
        ({"data": np.array([1.0, np.nan, 2.0])}, "NaN, infinity or numbers too large"),
        ({"data": np.array([1.0, 1e300, 2.0])}, "NaN, infinity or numbers too large"),
        ({"data": np.array([1j, 2, 3])}, "data is of type complex128"),
        ({"shape": np.array([2, 10**12])}, "it declares 2 x 1,000,000,000,000 for 3 values"),
        ({"shape": np.array([-2, 3])}, "it declares"),
        ({"shape": np.array([2, 3, 4])}, "shape is not two numbers"),
        ({"format": np.array(b"bsr")}, "it is in the format 'bsr'"),
        ({"format": np.array([1, 2])}, "not a sparse matrix"),
    ],
)
def test_a_wrong_matrix_is_refused(tmp_path, changed, message):
    np.savez(tmp_path / "X.npz", **parts_of(**changed))
    with pytest.raises(TreetopError, match=r"X\.npz: not a sparse matrix saved by scipy") as error:
        load_matrix(tmp_path / "X.npz")
    assert message in str(error.value)
    assert str(error.value).endswith("save it again with scipy.sparse.save_npz")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_every_format_is_read(tmp_path, form):
    sp.save_npz(tmp_path / "X.npz", MATRIX.asformat(form))
    assert (load_matrix(tmp_path / "X.npz") != MATRIX).nnz == 0


def test_arrays_that_are_not_what_their_header_says(tmp_path):
    """Nothing is allocated for a header's promise, and pickles are not opened."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**11,)}
    )
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    for content, message in (
        (header.getvalue(), "data is shorter or longer than it says"),
        (objects.getvalue(), "data holds Python objects"),
    ):
        np.savez(tmp_path / "X.npz", **{k: v for k, v in parts_of().items() if k != "data"})
        with zipfile.ZipFile(tmp_path / "X.npz", "a") as archive:
            archive.writestr("data.npy", content)
        with pytest.raises(TreetopError, match=message):
            load_matrix(tmp_path / "X.npz")


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path):
    np.savez_compressed(tmp_path / "X.npz", **parts_of(data=np.zeros(1 << 24)))
    with pytest.raises(TreetopError, match="it would grow to"):
        load_matrix(tmp_path / "X.npz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.svm", "0 2000000000:1\n", "2,000,000,001 features, but only 2 values"),
        ("a.svm", "1999999999 1:1\n", "2,000,000,000 labels, but only 2 values: number the labels"),
        ("train.txt", "1 2147483647 2\n0 1:1\n", "2,147,483,647 features, but only 2 values"),
        ("train.txt", "1 9 99999999999\n0 1:1\n", "99,999,999,999 labels, but only 2 values"),
    ],
)
def test_declared_sizes_are_bounded_by_the_data(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(TreetopError, match=message):
        open_data(tmp_path / name)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"title": "a", "target_ind": [1000000000000000000000]}', "label numbers must be below"),
        ('{"title": "a", "target_ind": [1000000000]}', "1,000,000,001 labels, but only 2 values"),
        ('{"title": "a", "target_ind": [1], "target_rel": [NaN]}', "target_rel must hold numbers"),
        ('{"title": "a", "target_ind": [1], "target_rel": [1e999]}', "target_rel must hold numbers"),
    ],
)
def test_numbers_of_an_lf_data_set(tmp_path, record, message):
    (tmp_path / "trn.json").write_text(record + "\n")
    with pytest.raises(TreetopError, match=message):
        open_data(tmp_path)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float64])
def test_labels_of_any_type_of_numbers(tmp_path, dtype):
    sp.save_npz(tmp_path / "X.npz", MATRIX)
    sp.save_npz(tmp_path / "Y.npz", (MATRIX > 0).astype(dtype))
    Y = open_data(tmp_path).split("train").Y
    assert Y.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]


def test_arrow_files_with_wrong_offsets_or_letters_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": ["a café", "b"], "labels": [["x"], ["y", "z"]]})
    path = str(tmp_path / "data.arrow")
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}]}')
    whole = (tmp_path / "data.arrow").read_bytes()
    assert open_data(tmp_path).split("train").texts == ["a café", "b"]
    offsets = np.array([0, 7, 8], np.int32).tobytes()
    for wrong in (
        whole.replace("café".encode(), b"caf\xc3\xc3"),
        whole.replace(offsets, np.array([0, 7, -8], np.int32).tobytes()),
        whole.replace(offsets, np.array([0, 7, 1 << 30], np.int32).tobytes()),
    ):
        assert wrong != whole
        (tmp_path / "data.arrow").write_bytes(wrong)
        with pytest.raises(TreetopError, match=r"data\.arrow: not readable"):
            open_data(tmp_path)


def test_plain_matrices(tmp_path):
    """X.npz is read with Y.npz beside it, as a folder or as a file; X.test.npz is another split."""
    sp.save_npz(tmp_path / "X.npz", MATRIX)
    sp.save_npz(tmp_path / "Y.npz", sp.csr_matrix([[1, 0], [0, 1]]))
    sp.save_npz(tmp_path / "X.test.npz", MATRIX[:1])
    folder, file = open_data(tmp_path), open_data(tmp_path / "X.npz")
    assert folder.split("train").named_labels(None) == [["0"], ["1"]]
    assert not folder.split("test").has_labels
    assert file.split("train").named_labels(None) == [["0"], ["1"]]
    (tmp_path / "labels.txt").write_text("red\nred\n")
    with pytest.raises(TreetopError, match=r"labels\.txt:2: the label name 'red' is also on line 1"):
        open_data(tmp_path)
    merged = open_data(tmp_path, merge_duplicates=True)
    assert merged.split("train").named_labels(merged.label_names) == [["red"], ["red"]]
    with pytest.raises(TreetopError, match=r"Y\.npz: holds labels: give the file of features, X\.npz"):
        open_data(tmp_path / "Y.npz")
