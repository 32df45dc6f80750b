"""What a supervisor tells a worker process that runs: one line on its stdin each, behind its order.

In and out: instructions, and the lines that hold them. Both ends are of one version.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum

from connector.config import Configuration
from connector.table_name import TableName


class Instruction(Enum):
    TRY_AGAIN = "try again what is FAILED"
    FORGET_TOPICS = "forget which topics were written to"

    def line(self) -> bytes:
        return f"{self.name}\n".encode()


@dataclass(frozen=True, slots=True)
class LogLevel:
    """Of the process, not of its work: obeyed at once, whatever it is doing."""

    logger: str
    level: int

    def line(self) -> bytes:
        return f"{json.dumps(asdict(self))}\n".encode()


@dataclass(frozen=True, slots=True)
class TellStreams:
    """Of a table: a `StreamsMessage`, for somebody who looks at it."""

    table: str

    def line(self) -> bytes:
        return f"{json.dumps(asdict(self))}\n".encode()


@dataclass(frozen=True, slots=True)
class ReadTables:
    """These from now on, and no others. ``written``: as the configuration says it."""

    names: tuple[tuple[str, str], ...]
    written: str

    @classmethod
    def of(cls, configuration: Configuration) -> ReadTables:
        tables = configuration.connector.reading.tables
        return cls(tuple((each.keyspace, each.name) for each in tables), configuration.written_tables)

    @property
    def tables(self) -> tuple[TableName, ...]:
        return tuple(TableName(*each) for each in self.names)

    def line(self) -> bytes:
        return f"{json.dumps(asdict(self))}\n".encode()


#: What is obeyed between two turns.
Asked = Instruction | TellStreams | ReadTables


def from_lines(lines: bytes) -> list[Asked | LogLevel]:
    """Those of whole lines."""
    return [_from_line(line) for line in lines.split(b"\n") if line]


def _from_line(line: bytes) -> Asked | LogLevel:
    """
    >>> from_lines(TellStreams("ks.t").line() + LogLevel("root", 10).line() + Instruction.TRY_AGAIN.line())[:2]
    [TellStreams(table='ks.t'), LogLevel(logger='root', level=10)]
    """
    if not line.startswith(b"{"):
        return Instruction[line.decode()]
    members = json.loads(line)
    if "names" in members:
        return ReadTables(tuple(map(tuple, members["names"])), members["written"])
    return TellStreams(**members) if "table" in members else LogLevel(**members)
