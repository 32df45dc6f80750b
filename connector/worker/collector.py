"""Python's garbage collector, as a worker sets it."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Once all modules are imported: what they brought stays, and is not looked at again.

    Pages are many thousand small objects that live for one page: looking for cycles among them finds none and costs
    more than decoding them.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
