"""Random statements for the CDC tests: as CQL text, and as the writes of the model.

A `Statement` knows nothing of the server. `at` counts microseconds from the start of the history; the CQL names the
real timestamp. The columns are those of `TABLE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.embedded.scylla.cdc_model import (
    Key,
    Request,
    Shape,
    delete_column,
    delete_range,
    delete_row,
    write_elements,
    write_list,
    write_value,
)

KINDS = {"m": "map", "st": "set", "u": "udt", "sm": "map", "l": "list"}
TWO_KEYS = Shape(
    clustering=("c1", "c2"), static=("s", "s2", "sm"), regular=("l", "m", "st", "u", "v1", "v2"), kinds=KINDS
)
DESCENDING = Shape(clustering=("c1",), static=("s",), regular=("l", "m", "u", "v1", "v2"), kinds=KINDS, descending=True)
NO_CLUSTERING = Shape(clustering=(), regular=("l", "m", "st", "v1", "v2"), kinds=KINDS)
SHAPES = (TWO_KEYS, DESCENDING, NO_CLUSTERING)

_TYPES = {"m": "map<int,int>", "sm": "map<int,int>", "st": "set<int>", "u": "udt", "l": "list<int>"}


def create_table(shape: Shape, name: str, options: Mapping[str, str]) -> str:
    """The DDL of a shape."""
    columns = ["pk int", *(f"{column} int" for column in shape.clustering)]
    columns += [f"{column} {_TYPES.get(column, 'int')} static" for column in shape.static]
    columns += [f"{column} {_TYPES.get(column, 'int')}" for column in shape.regular]
    key = ", ".join(["pk", *shape.clustering])
    cdc = ", ".join(f"'{option}': '{value}'" for option, value in {"enabled": "true", **options}.items())
    order = f" AND CLUSTERING ORDER BY ({shape.clustering[0]} DESC)" if shape.descending else ""
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH cdc = {{{cdc}}}{order}"


@dataclass(frozen=True)
class Statement:
    """One modification of partition 0. `kind` is insert, update, columns (DELETE of columns), row, range or
    partition."""

    kind: str
    key: Key | None = None
    values: tuple[tuple[str, Any], ...] = ()
    elements: tuple[tuple[str, tuple[tuple[int, int | None], ...]], ...] = ()
    start: tuple[Key, bool] = ((), True)
    end: tuple[Key, bool] = ((), True)
    at: int = 0
    ttl: int = 0
    #: What happens to the list: set, append or prepend, and its values.
    elements_of_l: tuple[str, tuple[int, ...]] | None = None

    def apply(self, shape: Shape, request: Request) -> None:
        """Add this statement's writes to a request of the model."""
        if self.kind == "partition":
            request.deleted = max(self.at, request.deleted or self.at)
        elif self.kind == "range":
            delete_range(shape, request, self.start, self.end, self.at)
        elif self.kind == "row":
            assert self.key is not None
            delete_row(request, self.key, self.at)
        else:
            self._apply_columns(shape, request)

    def _apply_columns(self, shape: Shape, request: Request) -> None:
        if self.kind == "insert" and self.key is not None:
            line = request.row(self.key)
            line.marker = max((self.at, self.ttl), line.marker or (self.at, self.ttl))
        for column, value in self.values:
            cells = self._cells(shape, request, column)
            if self.kind == "columns":
                delete_column(shape, cells, column, self.at)
            else:
                write_value(shape, cells, column, value, self.at, self.ttl)
        for column, elements in self.elements:
            write_elements(self._cells(shape, request, column), column, dict(elements), self.at, self.ttl)
        if self.elements_of_l is not None:
            write_list(request, self._cells(shape, request, "l"), *self.elements_of_l, self.at, self.ttl)

    def _cells(self, shape: Shape, request: Request, column: str) -> dict[str, Any]:
        if column in shape.static:
            return request.static
        assert self.key is not None
        return request.row(self.key).cells

    def cql(self, shape: Shape, table: str, base: int) -> str:
        """The statement with its timestamp relative to `base`."""
        stamp = f"USING TIMESTAMP {base + self.at}"
        if self.kind == "insert":
            names = ["pk", *(shape.clustering if self.key is not None else ()), *(name for name, _ in self.values)]
            shown = ["0", *map(str, self.key or ()), *(_literal(column, value) for column, value in self.values)]
            if self.elements_of_l is not None:
                names, shown = [*names, "l"], [*shown, str(list(self.elements_of_l[1]))]
            ttl = f" AND TTL {self.ttl}" if self.ttl else ""
            return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(shown)}) {stamp}{ttl}"
        if self.kind == "update":
            sets = [f"{column} = {_literal(column, value)}" for column, value in self.values]
            for column, elements in self.elements:
                sets += [_element(column, key, value) for key, value in elements]
            if self.elements_of_l is not None:
                verb, elements_of_l = self.elements_of_l
                given = str(list(elements_of_l))
                sets.append(f"l = {({'set': '{}', 'append': 'l + {}', 'prepend': '{} + l'}[verb]).format(given)}")
            ttl = f" AND TTL {self.ttl}" if self.ttl else ""
            return f"UPDATE {table} {stamp}{ttl} SET {', '.join(sets)} WHERE {self._where(shape)}"
        names = [column for column, _ in self.values]
        return f"DELETE {', '.join(names)} FROM {table} {stamp} WHERE {self._where(shape)}"

    def _where(self, shape: Shape) -> str:
        parts = ["pk = 0"]
        if self.key is not None:
            parts += [f"{name} = {value}" for name, value in zip(shape.clustering, self.key)]
        if self.kind == "range":
            common = 0
            (low, low_in), (high, high_in) = self.start, self.end
            last = len(shape.clustering) - 1 if low == high else len(shape.clustering)
            while common < min(len(low), len(high), last) and low[common] == high[common]:
                parts.append(f"{shape.clustering[common]} = {low[common]}")
                common += 1
            after, before = (">", "<") if not shape.descending else ("<", ">")
            if len(low) > common:
                parts.append(f"{shape.clustering[common]} {after}{'=' if low_in else ''} {low[common]}")
            if len(high) > common:
                parts.append(f"{shape.clustering[common]} {before}{'=' if high_in else ''} {high[common]}")
        return " AND ".join(parts)


def _literal(column: str, value: Any) -> str:
    if value is None:
        return "null"
    if column in ("m", "sm"):
        return "{" + ", ".join(f"{key}: {each}" for key, each in value.items()) + "}"
    if column == "st":
        return "{" + ", ".join(map(str, value)) + "}"
    if column == "u":
        return "{" + ", ".join(f"{'ab'[key]}: {each}" for key, each in value.items()) + "}"
    return str(value)


def _element(column: str, key: int, value: int | None) -> str:
    if column == "u":
        return f"u.{'ab'[key]} = {'null' if value is None else value}"
    if column == "st":
        return f"st = st {'-' if value is None else '+'} {{{key}}}"
    return f"{column}[{key}] = {'null' if value is None else value}"


@dataclass(frozen=True)
class History:
    """Requests in the order in which they are sent, each a list of statements (a batch if more than one)."""

    shape: Shape
    options: Mapping[str, str] = field(default_factory=dict)
    requests: tuple[tuple[Statement, ...], ...] = ()


_small = st.integers(-2, 3)
_OPTIONS = st.fixed_dictionaries(
    {
        "preimage": st.sampled_from(["false", "true", "full"]),
        "postimage": st.sampled_from(["false", "true"]),
        "delta": st.sampled_from(["full", "full", "keys"]),
    }
)


@st.composite
def _value(draw: st.DrawFn, column: str) -> Any:
    if draw(st.integers(0, 4)) == 0:
        return None
    if column in ("m", "sm"):
        return draw(st.dictionaries(st.integers(0, 3), _small, min_size=1, max_size=3))
    if column == "st":
        return {key: key for key in draw(st.sets(st.integers(0, 3), min_size=1, max_size=3))}
    if column == "l":
        return None
    if column == "u":
        return draw(st.dictionaries(st.integers(0, 1), _small, min_size=1, max_size=2))
    return draw(_small)


@st.composite
def _columns(draw: st.DrawFn, columns: tuple[str, ...], least: int) -> tuple[tuple[str, Any], ...]:
    names = draw(st.lists(st.sampled_from(columns), unique=True, min_size=least, max_size=3)) if columns else []
    return tuple((name, draw(_value(name))) for name in names)


@st.composite
def _elements(draw: st.DrawFn, column: str) -> tuple[tuple[int, int | None], ...]:
    keys = draw(st.lists(st.integers(0, 1 if column == "u" else 3), unique=True, min_size=1, max_size=2))
    if column == "st":
        return tuple((key, key if draw(st.booleans()) else None) for key in keys)
    return tuple((key, draw(st.none() | _small)) for key in keys)


@st.composite
def _list_change(
    draw: st.DrawFn, values: tuple[tuple[str, Any], ...], verbs: tuple[str, ...]
) -> tuple[str, tuple[int, ...]] | None:
    """A change of the list, unless the statement assigns it already."""
    if any(name == "l" for name, _ in values) or draw(st.integers(0, 2)):
        return None
    return draw(st.sampled_from(verbs)), tuple(draw(st.lists(_small, max_size=3)))


def _bound(draw: st.DrawFn, shape: Shape, prefix: Key) -> tuple[Key, bool]:
    if not draw(st.booleans()):
        return prefix, True
    return (*prefix, draw(st.integers(0, 3))), draw(st.booleans())


@st.composite
def statements(draw: st.DrawFn, shape: Shape, times: tuple[int, ...], ttls: tuple[int, ...], ranges: bool) -> Statement:
    """Any statement on partition 0 of a table of this shape, or any range delete."""
    at, ttl = draw(st.sampled_from(times)), draw(st.sampled_from(ttls))
    kinds = ["insert", "insert", "update", "update", "columns", "row", "partition"]
    if shape.clustering:
        kinds += ["static insert", "static update", "range"]
    kind = "range" if ranges else draw(st.sampled_from(kinds))
    key: Key = tuple(draw(st.integers(0, 2)) for _ in shape.clustering)
    if kind == "partition" or (kind == "row" and not shape.clustering):
        return Statement("partition", at=at)
    if kind == "row":
        return Statement("row", key, at=at)
    if kind == "range":
        prefix: Key = ()
        if len(shape.clustering) > 1 and draw(st.booleans()):
            prefix = (draw(st.integers(0, 2)),)
        start, end = _bound(draw, shape, prefix), _bound(draw, shape, prefix)
        low, high = (end, start) if (start[0] > end[0]) != shape.descending and start[0] and end[0] else (start, end)
        if low[0] == high[0]:
            # One value on both sides: an equality, or a closed range of one row.
            low = high = (low[0], True)
        if not low[0] and not high[0]:
            return Statement("partition", at=at)
        return Statement("range", None, start=low, end=high, at=at)
    every = shape.static + shape.regular
    if kind == "static insert":
        return Statement("insert", None, draw(_columns(shape.static, 1)), at=at, ttl=ttl)
    if kind == "static update":
        return Statement("update", None, draw(_columns(shape.static, 1)), at=at, ttl=ttl)
    if kind == "insert":
        values = draw(_columns(every, 0))
        return Statement("insert", key, values, at=at, ttl=ttl, elements_of_l=draw(_list_change(values, ("set",))))
    if kind == "columns":
        return Statement("columns", key, draw(_columns(shape.regular, 1)), at=at)
    values = draw(_columns(every, 0))
    set_already = {name for name, _ in values}
    many = [name for name in every if name in shape.kinds and name not in set_already and name != "l"]
    chosen = draw(st.lists(st.sampled_from(many), unique=True, max_size=2)) if many else []
    elements = tuple((name, draw(_elements(name))) for name in chosen)
    change = draw(_list_change(values, ("set", "append", "prepend")))
    if not values and not elements and change is None:
        values = (("v1", draw(_value("v1"))),)
    touched = [name for name, _ in values] + [name for name, _ in elements] + (["l"] if change else [])
    # An UPDATE of statics only may not name a row.
    addressed = key if set(touched) & set(shape.regular) else None
    return Statement("update", addressed, values, elements, at=at, ttl=ttl, elements_of_l=change)


@st.composite
def requests(draw: st.DrawFn, shape: Shape) -> list[Statement]:
    """The statements of one request; most have one timestamp and one TTL, which decides how they are logged."""
    times, ttls = (
        draw(st.sampled_from([(0,), (0,), (0, 1, 2)])),
        draw(st.sampled_from([(0,), (0,), (500,), (0, 500, 600)])),
    )
    # Range deletes alone, now and then, since few meet each other among everything else.
    ranges = bool(shape.clustering) and draw(st.integers(0, 3)) == 0
    return draw(st.lists(statements(shape, times, ttls, ranges), min_size=1, max_size=5))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A table, its options, and up to six requests with rising timestamps."""
    shape = draw(st.sampled_from(SHAPES))
    batches = draw(st.lists(requests(shape), min_size=1, max_size=6))
    spaced = tuple(
        tuple(replace(each, at=number * 10 + each.at) for each in batch) for number, batch in enumerate(batches)
    )
    return History(shape, draw(_OPTIONS), spaced)
