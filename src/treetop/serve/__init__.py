"""Serve a model over HTTP, with a web page: `treetop serve`."""
