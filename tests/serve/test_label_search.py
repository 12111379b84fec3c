"""Searching labels by name: ranking and speed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treetop.serve.label_search import LabelSearch

NAMES = np.array(["apple", "pineapple", "green apple", "pear", "Äpfel", "ap\nple"], dtype=object)


def test_prefixes_of_names_come_first_then_prefixes_of_words_then_other_matches():
    search = LabelSearch(NAMES, np.array([5, 9, 7, 1, 1, 1]))
    assert [name for name, _ in search.find("apple", 10)] == ["apple", "green apple", "pineapple"]


def test_case_is_ignored_and_an_empty_query_lists_frequent_labels():
    search = LabelSearch(NAMES, np.array([5, 9, 7, 1, 1, 1]))
    assert search.find("ÄPF", 3) == [("Äpfel", 1)]
    assert [name for name, _ in search.find("", 2)] == ["pineapple", "green apple"]


@given(
    st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), max_size=30),
    st.text(max_size=3),
)
def test_it_finds_the_same_labels_as_a_plain_search(names, query):
    search = LabelSearch(np.array(names, dtype=object), np.zeros(len(names), int))
    wanted = " ".join(query.casefold().split())
    matches = {name for name, _ in search.find(query, 1000)}
    plain = {name for name in names if wanted in name.casefold().replace("\n", " ")}
    assert matches == plain


def test_a_million_labels_take_milliseconds():
    import time

    names = np.array([f"label number {n}" for n in range(1_000_000)], dtype=object)
    search = LabelSearch(names, np.zeros(names.size, int))
    started = time.thread_time()  # unlike the time on the clock, without other processes
    assert search.find("777777", 10)[0][0] == "label number 777777"
    assert time.thread_time() - started < 0.5
