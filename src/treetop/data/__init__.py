"""Readers and writers of file formats, which are detected by content."""

from treetop.data.dataset import Dataset, Split
from treetop.data.read import open_data

__all__ = ["Dataset", "Split", "open_data"]
