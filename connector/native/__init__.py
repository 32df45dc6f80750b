"""The native block path: from raw pages of a log to the bytes of records, in C, for many rows at once.

In: pages that nobody has cut, an ``Encoder``'s outlines. Out: ``RecordBlock``s. ``program`` and ``plan`` say what is to
be written, ``kernel/`` writes it, ``library`` is how it is called, ``selftest`` tells whether it is right. What it does
not know it refuses, batch by batch; the plain way, which is the reference, takes that batch.
"""

from __future__ import annotations

from connector.native.blocks import BlockEncoder, RecordBlock
from connector.native.kafka import BlockClient, BlockProducer
from connector.native.library import Kernel, NoKernel
from connector.native.loading import Native, load_native
from connector.native.selftest import Difference, compare
from connector.native.sieve import BulkClient, Sieve, bulk_client

__all__ = [
    "BlockClient",
    "BlockEncoder",
    "BlockProducer",
    "BulkClient",
    "Difference",
    "Kernel",
    "Native",
    "NoKernel",
    "RecordBlock",
    "Sieve",
    "bulk_client",
    "compare",
    "load_native",
]
