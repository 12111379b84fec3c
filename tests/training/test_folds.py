import numpy as np

from treetop.model.seen import hashes_of
from treetop.training.folds import held_out


def test_share_and_most_decide_how_many():
    texts = [f"document {number}" for number in range(1000)]
    assert held_out(hashes_of(texts)).size == 200
    assert held_out(hashes_of(texts), share=0.5).size == 500
    assert held_out(hashes_of(texts), most=30).size == 30
    assert held_out(hashes_of(texts[:1])).size == 0


def test_a_smaller_fold_is_part_of_a_larger_one():
    hashes = list(hashes_of([f"document {number}" for number in range(300)]))
    few, many = held_out(hashes, share=0.1), held_out(hashes, share=0.3)
    assert few.size == 30
    assert np.isin(few, many).all()


def test_equal_documents_are_on_one_side():
    texts = [f"document {number % 70}" for number in range(300)]
    held = held_out(hashes_of(texts))
    assert 50 <= held.size <= 60
    inside = {texts[row] for row in held}
    outside = {text for row, text in enumerate(texts) if row not in set(held.tolist())}
    assert not inside & outside


def test_the_fold_depends_on_the_documents_and_the_seed_alone():
    texts = [f"document {number}" for number in range(200)]
    held = {texts[row] for row in held_out(hashes_of(texts))}
    assert {texts[::-1][row] for row in held_out(hashes_of(texts[::-1]))} == held
    other = {texts[row] for row in held_out(hashes_of(texts), seed=1)}
    assert len(held & other) < 30


def test_one_document_is_always_left():
    assert held_out([5, 5, 5], share=1.0).size == 0
    assert held_out([5, 6, 7], share=1.0).size == 2
