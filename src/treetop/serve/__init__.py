"""A model as an HTTP service with a page: `treetop serve`."""
