"""The kernel as Python calls it.

In: the library that ``build.py`` made. Out: ``Kernel``, or ``NoKernel`` with the reason why there is none. Calls
release the interpreter's lock while they run.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from connector.changes import Row, UncutRows
from connector.native.build import FOLDER, LIBRARY, sources_hash
from connector.native.plan import KernelPlan

_FIRST_POWER: Final = -292
_LAST_POWER: Final = 324
#: What ``encode`` tells of what stopped it.
MADE, REFUSED, FULL = 0, -1, -2
#: Of the kernel's ``plan``, behind its pointers.
_NUMBERS: Final = 26
#: Of its ``record``.
RECORD_WORDS: Final = 6
_COLUMNS_OF_A_LOG: Final = ("cdc$stream_id", "cdc$time", "cdc$end_of_batch")


class NoKernel(Exception):
    """Why records are made without it."""


class _Plan(ctypes.Structure):
    """The kernel's ``plan``."""

    _fields_ = [
        ("words", POINTER(c_int32)),
        ("text", c_char_p),
        ("numbers", c_int32 * _NUMBERS),
    ]


class LoadedPlan:
    """A plan where the kernel can read it, with its scratch memory."""

    def __init__(self, plan: KernelPlan, scratch: int) -> None:
        self.plan = plan
        self._words = (c_int32 * len(plan.words))(*plan.words)
        self._text = plan.text
        numbers = (c_int32 * _NUMBERS)(*plan.numbers)
        self.structure = _Plan(ctypes.cast(self._words, POINTER(c_int32)), plan.text, numbers)
        self.scratch = ctypes.create_string_buffer(scratch)


class Kernel:
    """Loaded and looked over, but not yet known to be right: that is for ``selftest`` to say."""

    def __init__(self, path: Path = LIBRARY, sources: Path = FOLDER) -> None:
        """Raises ``NoKernel``, also where the library was built from others than these sources."""
        if sys.byteorder != "little" or ctypes.sizeof(c_void_p) != 8:
            raise NoKernel("it is made for little-endian machines of 64 bits")
        if not path.exists():
            raise NoKernel("it was not built: there was no C compiler at set-up")
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            raise NoKernel(f"it does not load: {error}") from None
        self.path = path
        if self.function("sources", c_char_p)().decode() != sources_hash(sources):
            raise NoKernel("it was built from other sources: build it again with `python -m connector.native`")
        self._scan = self.function(
            "scan", c_int64,
            c_char_p, c_int64, c_int64, c_int32, c_int32, POINTER(c_int32), POINTER(c_int64), POINTER(c_int32),
            POINTER(c_int32),
        )  # fmt: skip
        self._scan_selected = self.function(
            "scan_selected", c_int64,
            c_char_p, c_int64, c_int64, c_int32, c_int32, c_int32, POINTER(c_int64), POINTER(c_int32),
        )  # fmt: skip
        self._encode = self.function(
            "encode", c_int32,
            c_void_p, c_char_p, c_int32, c_char_p, POINTER(c_int64), POINTER(c_int32), c_int32, c_int32, c_int64,
            c_int64, c_int64, c_int32, c_void_p, POINTER(c_uint8), c_int64, POINTER(c_int32), c_int32,
            POINTER(c_int32), POINTER(c_int64), POINTER(c_int64),
        )  # fmt: skip
        self._scratch_size = self.function("scratch_size", c_int64, c_int32)
        self.function("set_powers", None, POINTER(c_uint64))(_powers())

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        function = getattr(self.library, name)
        function.restype, function.argtypes = result, arguments
        return function  # type: ignore[no-any-return]

    def scan(
        self, body: bytes, at: int, columns: Sequence[str], rows: int, cut: Callable[[], Sequence[Row]]
    ) -> UncutRows | None:
        """The rows of a page of a log that begin at ``at``; None if they are not as rows are. Any thread may call."""
        if "cdc$stream_id" not in columns or "cdc$time" not in columns or not 0 <= rows <= len(body):
            return None
        places = places_of(columns)
        starts, firsts, turns = (c_int64 * (rows + 1))(), (c_int32 * (rows + 1))(), c_int32()
        batches = self._scan(body, len(body), at, len(columns), rows, places, starts, firsts, turns)
        if batches < 0:
            return None
        return UncutRows(body, len(columns), cast(Any, starts), cast(Any, firsts), batches, turns.value, cut)

    def scan_selected(
        self, body: bytes, at: int, columns: int, rows: int, keys: int, cut: Callable[[], Sequence[Row]] | None = None
    ) -> UncutRows | None:
        """Rows as they are selected of a table, the first ``keys`` columns of which are a partition's key; None if they
        are not as rows are. Any thread may call."""
        if not 0 <= rows <= len(body) or not 0 <= keys <= columns:
            return None
        starts, firsts = (c_int64 * (rows + 1))(), (c_int32 * (rows + 1))()
        partitions = self._scan_selected(body, len(body), at, columns, rows, keys, starts, firsts)
        if partitions < 0:
            return None
        return UncutRows(body, columns, cast(Any, starts), cast(Any, firsts), partitions, 0, cut)

    def load(self, plan: KernelPlan) -> LoadedPlan:
        return LoadedPlan(plan, self._scratch_size(plan.columns))

    def encode(
        self, plan: LoadedPlan, rows: UncutRows, begin: int, end: int, now: int, limit: int, room: int, most: int,
        output: Output,
    ) -> Told:  # fmt: skip
        """Batches ``begin`` to ``end``, as `encode` in ``kernel.c`` says."""
        told = (c_int64 * (len(Told._fields) - 1))()
        made = self._encode(
            ctypes.byref(plan.structure), rows.head, rows.headed, rows.body, rows.starts, rows.firsts, begin, end, now,
            limit, room, most, plan.scratch, output.bytes, output.size, output.records, output.capacity, output.ends,
            output.times, told,
        )  # fmt: skip
        return Told(made, *told)


class Told(NamedTuple):
    """What `encode` says of a block: of how many batches it is; why it ends there; its bytes, as they count in a
    transaction; and their times, as ``WriteTimes`` has them."""

    made: int
    verdict: int
    size: int
    earliest: int
    latest: int
    total: int


def _reference(name: str) -> Callable[[object], None]:
    function: Callable[[object], None] = ctypes.PYFUNCTYPE(None, ctypes.py_object)((name, ctypes.pythonapi))
    return function


_keep, _let_go = _reference("Py_IncRef"), _reference("Py_DecRef")


class Output:
    """Where the kernel writes, again and again: it is as large as the largest block so far needed."""

    def __init__(self, batches: int, size: int = 1 << 20) -> None:
        self.batches = batches
        self.size = size
        self.capacity = 4 * batches
        #: Whether somebody may still read its bytes who does not know Python's references.
        self.lent = False
        self._make()

    def grow(self, most: int) -> bool:
        """Twice as large; False if that would be more than ``most`` bytes."""
        if self.size >= most:
            return False
        self.size, self.capacity = min(most, self.size * 2), self.capacity * 2
        self._make()
        return True

    def lend(self) -> None:
        """Its bytes stay where they are until they are given back, whoever forgets them: also when Python ends."""
        self.lent = True
        _keep(self.bytes)

    def give_back(self) -> None:
        _let_go(self.bytes)
        self.lent = False

    def _make(self) -> None:
        self.bytes = (c_uint8 * self.size)()
        self.records = (c_int32 * (RECORD_WORDS * self.capacity))()
        self.ends = (c_int32 * self.batches)()
        self.times = (c_int64 * self.batches)()


def places_of(columns: Sequence[str]) -> Any:
    """Where a page has what parts its batches."""
    names = {name: place for place, name in enumerate(columns)}
    return (c_int32 * len(_COLUMNS_OF_A_LOG))(*(names.get(name, -1) for name in _COLUMNS_OF_A_LOG))


def _powers() -> Any:
    """Powers of ten as 128 bits, the highest of which is set, rounded up."""
    words: list[int] = []
    for power in range(_FIRST_POWER, _LAST_POWER + 1):
        if power >= 0:
            value = 10**power
            shift = value.bit_length() - 128
            bits = -(-value >> shift) if shift > 0 else value << -shift
        else:
            divisor = 10**-power
            bits = -(-(1 << (divisor.bit_length() + 127)) // divisor)
            bits = bits if bits.bit_length() <= 128 else -(-bits >> 1)
        words += (bits >> 64, bits & (1 << 64) - 1)
    return (c_uint64 * len(words))(*words)
