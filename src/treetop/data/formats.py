"""All formats, in the order in which they are tried.

A format is a module with NAME, ABOUT, `matches(path)`, `read(path, columns)` and `write(dataset,
path)`. Formats with distinctive file names or contents come first.
"""

from types import ModuleType

from treetop.data import (
    annif,
    attentionxml,
    columnar,
    fasttext,
    lf,
    libsvm,
    pecos,
    tables,
    textlines,
    xmlrepo,
    xmlrepo_split,
)

FORMATS: tuple[ModuleType, ...] = (
    xmlrepo_split,
    lf,
    pecos,
    attentionxml,
    columnar,
    xmlrepo,
    fasttext,
    libsvm,
    annif,
    tables,
    textlines,
)
