"""Token ids of a whole corpus, kept for several passes: in memory up to a limit, then on disk."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from typing import IO

import numpy as np

from treetop.features.words.tokens import Block, TokenTable, blocks_of_text

# Of text, per thread. With short tasks, threads would mostly wait for the interpreter lock, which the
# import of torch holds most of the time while features are learned.
BLOCK_BYTES_PER_THREAD = 4 << 20
SPOOL_BYTES = 1 << 30


class Spool:
    """Blocks of token ids: in memory up to `limit` bytes, the others in a temporary file."""

    def __init__(self, limit: int) -> None:
        self.blocks: list[Block] = []
        self.free_bytes = limit
        self.file: IO[bytes] | None = None

    def append(self, block: Block) -> None:
        """Add a block, in memory or mapped from the file."""
        if self.free_bytes >= block.ids.nbytes:
            self.free_bytes -= block.ids.nbytes
            self.blocks.append(block)
            return
        self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        start = -(-self.file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        self.file.seek(start)
        self.file.write(block.ids.tobytes())
        self.file.flush()
        if block.ids.size:
            view = mmap.mmap(
                self.file.fileno(), block.ids.nbytes, access=mmap.ACCESS_READ, offset=start
            )
            block = block._replace(ids=np.frombuffer(view, np.int32))
        self.blocks.append(block)


def read_corpus(
    texts: Iterable[str], tables: list[TokenTable], threads: int
) -> tuple[list[Spool], int]:
    """Token ids of all documents by each table, and the number of documents. Reads `texts` once."""
    spools = [Spool(SPOOL_BYTES) for _ in tables]
    documents = 0
    for block in blocks_of_text(texts, BLOCK_BYTES_PER_THREAD * threads):
        for table, spool in zip(tables, spools, strict=True):
            spool.append(table.read(block, documents, threads))
        documents += len(block)
    return spools, documents
