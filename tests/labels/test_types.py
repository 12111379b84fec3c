"""The type of label names."""

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treetop.errors import TreetopError
from treetop.labels.types import check_names, label_type, name_array, parsed_names, plain_label

NAMES = st.one_of(
    st.lists(st.integers(), min_size=1, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True),
    st.lists(st.booleans(), min_size=1, unique=True),
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")),
        min_size=1,
        unique=True,
    ),
)


class Colour(enum.StrEnum):
    RED = "red"


@given(NAMES)
def test_names_written_as_text_are_read_as_what_they_were(names):
    classes = name_array([plain_label(name) for name in names])
    written = [str(name) for name in classes.tolist()]
    read = parsed_names(written, label_type(classes))
    assert read.dtype == classes.dtype
    assert read.tolist() == names
    assert [type(name) for name in read.tolist()] == [type(name) for name in names]


@pytest.mark.parametrize(
    ("names", "dtype"),
    [
        ([2**53 + 1, -(2**63)], np.int64),
        ([2**63, 2**64 - 1], np.uint64),
        ([2**63, -1], object),  # numpy would make floats of these
        ([2**64], object),
        ([1e22, -0.5], np.float64),
        ([True], np.bool_),
        (["a\0", "a"], object),  # numpy would strip the NUL
        ([], object),
    ],
)
def test_arrays_hold_names_exactly(names, dtype):
    assert name_array(names).dtype == dtype
    assert name_array(names).tolist() == names


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        (np.str_("a"), "a"),
        (Colour.RED, "red"),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float32(0.1), 0.10000000149011612),
        (np.longdouble(0.5), 0.5),
        (np.bool_(True), True),
    ],
)
def test_numpy_scalars_and_enums_become_plain_values(name, plain):
    assert (plain_label(name), type(plain_label(name))) == (plain, type(plain))


def test_minus_zero_is_zero():
    assert str(plain_label(-0.0)) == "0.0"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([1, "a"], "several types: 1 is of type int, 'a' of type str: give all names as strings"),
        ([True, 1], "several types: True is of type bool, 1 of type int"),
        ([1, 1.5], "several types: 1 is of type int, 1.5 of type float"),
    ],
)
def test_names_have_one_type(names, message):
    with pytest.raises(TreetopError, match=message):
        name_array(names)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "must differ from each other: 'a' occurs twice"),
        (["a\nb"], r"label 'a\\nb' contains a line break: replace it by a space"),
        ([""], "label '' is empty: give documents without labels an empty list"),
        ([" \t"], r"label ' \\t' is empty"),
        (["\ud800"], r"label '\\ud800' contains half of a surrogate pair"),
        ([float("nan")], "NaN or infinity, which cannot be labels"),
        ([float("inf")], "NaN or infinity"),
    ],
)
def test_names_that_cannot_be_saved_are_refused(names, message):
    with pytest.raises(TreetopError, match=message):
        check_names(names)


def test_names_that_look_alike_are_different():
    check_names(["a", " a", "a ", "a\r", "é", "e\u0301", "A"])


@pytest.mark.parametrize(("names", "kind"), [(["x"], "int"), (["x"], "float"), (["x"], "bool")])
def test_text_of_another_type_is_a_value_error(names, kind):
    with pytest.raises(ValueError, match=r"x|boolean"):
        parsed_names(names, kind)
