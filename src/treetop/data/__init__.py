"""The field's file formats, recognised by what is in a file or folder."""

from treetop.data.dataset import Dataset, Split
from treetop.data.read import open_data

__all__ = ["Dataset", "Split", "open_data"]
