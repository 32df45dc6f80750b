"""The case files in `cases/`: a statement (or several that mean the same) and the log rows it must leave.

Comes in: a file's text. Goes out: a `Case`. Layout: a title, `options:`, optionally `setup:`, then the sections
`statement:`, `or:`, `log:` and `note:`. `T` is the request's timestamp; log rows are: time, number, operation with its
name, ttl, whether the row ends its batch, and all other columns that are not null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.embedded.scylla.cdc_rows import ShownRow

FOLDER = Path(__file__).parent / "cases"
TABLES = {
    "t": (
        "CREATE TABLE {name} (pk int, ck int, s int static, s2 int static, v1 int, v2 int, m map<int,int>, "
        "st set<int>, l list<text>, u udt, PRIMARY KEY (pk, ck))"
    ),
    "t0": "CREATE TABLE {name} (pk int PRIMARY KEY, v1 int, v2 int, m map<int,int>)",
    "t3": "CREATE TABLE {name} (pk int, c1 int, c2 int, v1 int, PRIMARY KEY (pk, c1, c2))",
    "td": (
        "CREATE TABLE {name} (pk int, c1 int, c2 int, v1 int, PRIMARY KEY (pk, c1, c2)) "
        "WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)"
    ),
    "tm": (
        "CREATE TABLE {name} (pk int, c1 int, c2 int, c3 int, PRIMARY KEY (pk, c1, c2, c3)) "
        "WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC, c3 ASC)"
    ),
    "tn": (
        "CREATE TABLE {name} (pk int, c1 int, c2 int, c3 int, PRIMARY KEY (pk, c1, c2, c3)) "
        "WITH CLUSTERING ORDER BY (c1 ASC, c2 ASC, c3 DESC)"
    ),
}
BASE_ROWS = (
    "INSERT INTO t (pk,ck,v1,v2,m,st,u) VALUES (0,0,1,2,{1:1},{1,2},{a:7,b:8})",
    "INSERT INTO t (pk,ck,v1,v2) VALUES (0,1,11,12)",
)
_ROW = re.compile(r"T([+-]\d+)? +(\d+) (-?\d+) \w+ +ttl=(\d+|-) +(end|-) +(.*)")
_COLUMN = re.compile(r"([\w$]+)=(.*?)(?=, [\w$]+=|$)")


@dataclass(frozen=True)
class Case:
    """One worked example."""

    name: str
    options: dict[str, str]
    setup: tuple[str, ...]
    statements: tuple[str, ...]
    log: list[ShownRow]

    @property
    def table(self) -> str:
        """Which of `TABLES` the case is about."""
        found = re.search(r"(?:FROM|INTO|UPDATE) (\w+)", self.statements[0])
        assert found is not None, self.name
        return found[1]


def parse_case(name: str, text: str) -> Case:
    """The case that a file describes."""
    head, *sections = re.split(r"^(statement|or|log|note):\n", text, flags=re.MULTILINE)
    bodies = list(zip(sections[::2], sections[1::2]))
    options: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    for line in head.splitlines():
        if line.startswith("options: ") and line != "options: defaults":
            options = dict(pair.split("=") for pair in line.removeprefix("options: ").split(", "))
        if line.startswith("setup: "):
            given = line.removeprefix("setup: ")
            setup = BASE_ROWS if given == "base rows" else (given,)
    statements = tuple(body.strip() for kind, body in bodies if kind in ("statement", "or"))
    (log,) = [body.strip() for kind, body in bodies if kind == "log"]
    rows = [] if log == "nothing" else [_row(name, line) for line in log.splitlines()]
    return Case(name, options, setup, statements, rows)


def _row(name: str, line: str) -> ShownRow:
    found = _ROW.fullmatch(line)
    assert found is not None, f"{name}: {line}"
    offset, number, operation, ttl, end, columns = found.groups()
    return ShownRow(
        int(offset or 0),
        int(number),
        int(operation),
        None if ttl == "-" else int(ttl),
        True if end == "end" else None,
        dict(_COLUMN.findall(columns)),
    )


def all_cases() -> list[Case]:
    """Every case, by the name of its file."""
    return [parse_case(path.stem, path.read_text()) for path in sorted(FOLDER.glob("*.case"))]
