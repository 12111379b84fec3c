"""The linear rankers and the search over them."""
