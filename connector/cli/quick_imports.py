"""What a process imports when it starts, in less time than that takes by itself.

In: a block of imports. Out: the same modules.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from types import ModuleType
from typing import cast

_NUMPY = "numpy"


@contextmanager
def quick_imports() -> Iterator[None]:
    """Modules are many objects and no garbage: the collector would look at all of them, again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def without_numpy() -> Iterator[None]:
    """The CQL driver loads it where it is installed, for a kind of rows that we never ask for. Only for imports of what
    has no other use for it: a process that has loaded the driver so gets no such rows any more."""
    # None is Python's own way to say that there is no such module.
    modules = cast("MutableMapping[str, ModuleType | None]", sys.modules)
    modules.setdefault(_NUMPY, None)
    try:
        yield
    finally:
        if modules[_NUMPY] is None:
            del modules[_NUMPY]
