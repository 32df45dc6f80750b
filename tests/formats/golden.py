"""Golden cases: plain text files that say what is configured, what is run in CQL, and which records come of it.

A file has a title, ``[config]`` (properties of the connector), ``[cql]`` (one statement a line), optionally ``[log]``
(``operation A becomes B``), and ``[records]``: key and value on two lines, then ``headers a=b c=d`` and ``topic T``
where there are headers, and where it is not the data topic of the table.
``<source>`` stands for the whole source block. Bytes are compared; the connector's clock stands still.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector import __version__
from connector.changes import Change, Row
from connector.formats.record import Record

CASES = Path(__file__).parent / "cases"
NOW_NS = 1_700_000_000_123_456_789
_SECTION = re.compile(r"^\[(\w+)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Expected:
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    config: dict[str, str]
    cql: tuple[str, ...]
    log: dict[int, int]
    records: tuple[Expected, ...]

    @property
    def table(self) -> str:
        for statement in self.cql:
            found = re.match(r"CREATE TABLE ks\.(\w+)", statement)
            if found:
                return found[1]
        raise AssertionError(f"{self.name} creates no table")


def read_case(path: Path) -> Case:
    title, *rest = _SECTION.split(path.read_text(encoding="utf-8"))
    assert title.startswith("# "), path
    sections = {name: body.strip("\n").split("\n") for name, body in zip(rest[::2], rest[1::2], strict=True)}
    codes = [re.match(r"operation (-?\d+) becomes (-?\d+)", line) for line in sections.get("log", ())]
    return Case(
        name=path.stem,
        config=dict(line.split("=", 1) for line in sections["config"] if line),  # type: ignore[misc]
        cql=tuple(line for line in sections["cql"] if line),
        log={int(code[1]): int(code[2]) for code in codes if code},
        records=tuple(_expected(sections["records"])),
    )


def all_cases() -> list[Case]:
    return [read_case(path) for path in sorted(CASES.glob("*.case"))]


def _expected(lines: list[str]) -> list[Expected]:
    made: list[Expected] = []
    pending = [line for line in lines if line]
    while pending:
        key, value = pending.pop(0).encode(), pending.pop(0).encode()
        headers: tuple[tuple[str, bytes], ...] = ()
        if pending and pending[0].startswith("headers "):
            pairs = (pair.partition("=") for pair in pending.pop(0).split()[1:])
            headers = tuple((name, text.encode()) for name, _, text in pairs)
        topic = pending.pop(0).split()[1] if pending and pending[0].startswith("topic ") else ""
        made.append(Expected(key, value, headers, topic))
    return made


def shown(change: Change, record: Record) -> Expected:
    """A record as a case writes it down: its source block, if it is exactly the expected one, as ``<source>``."""
    us = change.timestamp_us
    ms = us // 1000
    table = change.table
    source = (
        f'{{"version":"{__version__}","connector":"scylla","name":"cases","ts_ms":{ms},"snapshot":"false",'
        f'"db":"{table.keyspace}","sequence":null,"ts_us":{us},"ts_ns":{ms}000000,'
        f'"keyspace_name":"{table.keyspace}","table_name":"{table.name}"}}'
    )
    value = b"null" if record.value is None else record.value.replace(source.encode(), b"<source>")
    data_topic = f"cases.{table.keyspace}.{table.name}"
    topic = "" if record.topic == data_topic else record.topic
    return Expected(record.key or b"null", value, tuple(record.headers), topic)


def recoded(row: Row, at: int, codes: dict[int, int]) -> Row:
    """The row with its operation code replaced."""
    raw = row[at]
    code = int.from_bytes(raw or b"", "big", signed=True)
    if code not in codes:
        return row
    cells: list[Any] = list(row)
    cells[at] = codes[code].to_bytes(1, "big", signed=True)
    return tuple(cells)
