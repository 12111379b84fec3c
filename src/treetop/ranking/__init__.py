"""Linear rankers on a label tree, and beam search over them."""
