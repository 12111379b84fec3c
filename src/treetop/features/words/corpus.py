"""Token ids of a whole corpus, kept for several passes: in memory up to a limit, then on disk."""

from __future__ import annotations

from collections.abc import Iterable

from treetop.features.words.tokens import Block, TokenTable, blocks_of_text
from treetop.runtime.spool import Shelf

# Of text, per thread. With short tasks, threads would mostly wait for the interpreter lock, which the
# import of torch holds most of the time while features are learned.
BLOCK_BYTES_PER_THREAD = 4 << 20


class Spool:
    """Blocks of token ids, which `shelf` keeps."""

    def __init__(self, shelf: Shelf) -> None:
        self.blocks: list[Block] = []
        self.shelf = shelf

    def append(self, block: Block) -> None:
        """Add a block, in memory or mapped from a file."""
        self.blocks.append(block._replace(ids=self.shelf.put(block.ids)))


def read_corpus(
    texts: Iterable[str], tables: list[TokenTable], threads: int, limit: int
) -> tuple[list[Spool], int]:
    """Token ids of all documents by each table, and the number of documents. Reads `texts` once.

    Of the ids, `limit` bytes stay in memory.
    """
    shelf = Shelf(limit)
    spools = [Spool(shelf) for _ in tables]
    documents = 0
    for block in blocks_of_text(texts, BLOCK_BYTES_PER_THREAD * threads):
        for table, spool in zip(tables, spools, strict=True):
            spool.append(table.read(block, documents, threads))
        documents += len(block)
    return spools, documents
