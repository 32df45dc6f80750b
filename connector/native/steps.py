"""What a key or a value is made of, one step after the other, as the kernel reads it.

In: names, texts, places. Out: steps, with everything that all records of a table have in common as literals. The codes
are those of the enumerations in ``kernel/kernel.c`` and ``kernel/headers.h``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from connector.formats import OutlineSide, to_json
from connector.native.program import Program, named


class Step(IntEnum):
    """What a key or a value is made of, one after the other."""

    LITERAL = 0
    SOURCE_MS = 1
    SOURCE_US = 2
    SOURCE_NS = 3
    NOW_MS = 4
    NOW_US = 5
    NOW_NS = 6
    STREAM_ID = 7
    TIME_ID = 8
    SEQUENCE_NUMBER = 9
    OPERATION = 10
    TTL = 11
    KIND = 12
    BEFORE = 13
    AFTER = 14
    KEY = 15
    BEFORE_OR_KEY = 16
    AFTER_OR_KEY = 17


class Form(IntEnum):
    """How a column stands in a struct."""

    BARE = 0
    CELL = 1
    SET_DELTA = 2
    LIST_DELTA = 3
    MAP_DELTA = 4
    FIELDS_DELTA = 5


#: Beside the form of a delta: it stands without its cell.
WITHOUT_CELL: Final = 8


class Text(IntEnum):
    """How a column of the key stands in a header, or a copy of what an envelope tells."""

    OF_JSON = 0
    TEXT = 1
    ASCII = 2
    DATE = 3
    TIMESTAMP = 4
    OF_STEP = 5


Steps = list[tuple[int, int, int]]


class Written:
    """An envelope in one of the two languages: steps, with everything between them as literals."""

    def __init__(self, program: Program, avro: bool) -> None:
        self._program, self._avro = program, avro
        self._steps: Steps = []
        self._literal = b""
        self._first = True
        self.open()

    def open(self) -> None:
        self._literal += b"" if self._avro else b"{"
        self._first = True

    def close(self) -> None:
        self._literal += b"" if self._avro else b"}"
        self._first = False

    def struct(self, name: str) -> None:
        self._name(name)
        self.open()

    def follow(self, step: Step, struct: int, something: bool, keyed: bool) -> None:
        """Fields that stand in a row: ``something``, if there are any. ``keyed``: there are others without a row."""
        self._flush()
        self._steps.append((step, struct, keyed))
        self._first = not something

    def _name(self, name: str) -> None:
        if not self._avro:
            self._literal += named(name, not self._first)
        self._first = False

    def texts(self, *fields: tuple[str, str]) -> None:
        for name, text in fields:
            self.text(name, text)

    def text(self, name: str, text: str, mark: bytes = b"") -> None:
        self._name(name)
        raw = text.encode()
        self._literal += mark + long_bytes(len(raw)) + raw if self._avro else to_json(text)

    def null(self, name: str) -> None:
        self._name(name)
        self._literal += b"\0" if self._avro else b"null"

    def step(self, name: str, step: Step, optional: bool = False, struct: int = 0) -> None:
        """``optional``: with Avro's mark of a value that is there, for numbers that have none of their own."""
        self._name(name)
        self._flush()
        self._steps.append((step, struct or optional, 0))

    def _flush(self) -> None:
        if self._literal:
            self._steps.append((Step.LITERAL, *self._program.literal(self._literal)))
        self._literal = b""

    def done(self) -> Steps:
        self._flush()
        return self._steps


class Copy(Written):
    """A single field as a text of its own: a step, a literal, or, of null, nothing."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, False)
        self._literal = b""

    def _name(self, name: str) -> None:
        pass

    def text(self, name: str, text: str, mark: bytes = b"") -> None:
        self._steps.append((Step.LITERAL, *self._program.literal(text.encode())))

    def null(self, name: str) -> None:
        pass


def long_bytes(value: int) -> bytes:
    """Avro's long, of a length."""
    made = bytearray()
    left = value << 1
    while left >= 0x80:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*made, left))


def framed(program: Program, side: OutlineSide, steps: Steps) -> Steps:
    head, tail = side.head(), side.tail
    around = [(int(Step.LITERAL), *program.literal(text)) if text else None for text in (head, tail)]
    return [step for step in (around[0], *steps, around[1]) if step is not None]


def add_steps(program: Program, steps: Steps) -> int:
    return program.add(len(steps), *(word for step in steps for word in step))
