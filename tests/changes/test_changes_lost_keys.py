"""Rows whose key lost a column are poison, rows that never had it are not: made by hand, by ScyllaDB, by the double."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from connector.changes import Batch, Column, DroppedColumn, TableDescription, changes_of, layout_of
from connector.errors import PoisonRow
from connector.timeuuid import micros_of
from connector.values import UserType, native, parse_type
from embedded.scylla.recordings.files import Histories, Seeded, read_recording
from tests.embedded.scylla.cdc_cases import TABLES, Case, all_cases
from tests.embedded.scylla.cdc_played import play
from tests.embedded.scylla.cdc_statements import History, create_table, histories
from tests.embedded.scylla.test_scylla_cdc_random import Server
from tests.formats.rows import STREAM, TIME, Log, log_columns, table
from tests.house import ROOT

COLUMNS = {"p": "int", "q": "int", "a": "int", "b": "int", "s": "text", "sm": "map<int, text>", "v": "text"}
COLUMNS |= {"m": "map<int, text>"}
PLAIN = {name: kind for name, kind in COLUMNS.items() if name not in ("s", "sm")}
LOG = Log(table(COLUMNS, ("p", "q"), ("a", "b"), ("s", "sm")))
WITHOUT_STATICS = Log(table(PLAIN, ("p", "q"), ("a", "b")))
SINGLE = Log(table({"p": "int", "q": "int", "v": "text"}, ("p", "q")))
PARTITION: dict[str, Any] = {"p": 1, "q": 2}
KEY = PARTITION | {"a": 3, "b": 4}
AT_US = micros_of(TIME.bytes)

#: Rows of a log: an operation, and cells by their columns.
Cells = list[tuple[int, dict[str, bytes | None]]]
_OF_ALL_LOGS = ("cdc$stream_id", "cdc$time", "cdc$batch_seq_no", "cdc$operation", "cdc$ttl", "cdc$end_of_batch")


def with_facts(log: Log, **facts: Any) -> Log:
    return Log(replace(log.description, **facts))


def rows_of(log: Log, code: int, **values: Any) -> list[Any]:
    """A batch with such a row, and with the other one where it has to be a pair."""
    deleted, removed = values.pop("deleted", ()), values.pop("removed", None)
    row = log.row(code, 1, deleted=deleted, removed=removed, **values)
    before = [log.row(5, 0, **KEY)] if code in (7, 8) else []
    behind = [log.row(7, 2, **KEY)] if code in (5, 6) else []
    return [*before, row, *behind]


@pytest.mark.parametrize("lost", ["p", "q"])
@pytest.mark.parametrize("code", [0, 1, 2, 3, -3, 4, -4, 5, 6, 7, 8, 9])
def test_no_change_is_without_its_partition_key(code: int, lost: str) -> None:
    for log, key in ((LOG, KEY), (SINGLE, PARTITION)):
        if log is SINGLE and code in (5, 6, 7, 8):
            continue
        log.changes(*rows_of(log, code, **key))
        with pytest.raises(PoisonRow, match=f"column {lost} of the key without a value"):
            log.changes(*rows_of(log, code, **{**key, lost: None}))


@pytest.mark.parametrize("left", [{}, {"a": 3}, {"b": 4}], ids=["both", "the last", "the first"])
@pytest.mark.parametrize(
    ("code", "written"),
    [
        (1, {"v": "x"}),
        (1, {"v": "x", "s": "y"}),
        (1, {"m": [(1, "x")]}),
        (1, {"deleted": ("v",)}),
        (1, {"removed": {"m": [1]}}),
        (2, {}),
        (2, {"v": "x"}),
        (2, {"s": "x"}),
        (3, {}),
        (-3, {}),
        (0, {"v": "x"}),
        (9, {"v": "x", "s": "y"}),
    ],
)
@pytest.mark.parametrize("log", [LOG, WITHOUT_STATICS], ids=["with static columns", "without"])
def test_no_change_of_a_row_is_without_its_clustering_key(
    log: Log, code: int, written: dict[str, Any], left: dict[str, Any]
) -> None:
    if log is WITHOUT_STATICS:
        written = {name: value for name, value in written.items() if name != "s"}
    log.changes(*rows_of(log, code, **KEY, **written))
    lost = ", ".join(name for name in ("a", "b") if name not in left)
    columns = f"columns {lost}" if not left else f"column {lost}"
    with pytest.raises(PoisonRow, match=f"batch_seq_no 1: {columns} of the key without a value"):
        log.changes(*rows_of(log, code, **PARTITION, **left, **written))


@pytest.mark.parametrize(
    "written",
    [{"s": "x"}, {"deleted": ("s",)}, {"sm": [(1, "x")]}, {"removed": {"sm": [1]}}, {"s": "x", "ttl": 5}, {}],
    ids=["set", "set to null", "an element", "no element", "with a TTL", "nothing, as of keys only"],
)
def test_static_rows_have_no_clustering_key(written: dict[str, Any]) -> None:
    images = [LOG.row(code, number, s="old", **PARTITION) for code, number in ((0, 0), (9, 2))]
    (change,) = LOG.changes(LOG.row(1, 1, **PARTITION, **written))
    assert (change.kind, change.key) == ("u", PARTITION | {"a": None, "b": None})
    (change,) = LOG.changes(images[0], LOG.row(1, 1, **PARTITION, **written), images[1])
    assert change.before is not None and change.after is not None
    assert LOG.changes(LOG.row(9, 0, True, **PARTITION)) == [], "of a static row that has nothing any more"


def test_an_update_of_nothing_is_a_static_rows_where_there_are_or_were_static_columns() -> None:
    """As `'delta': 'keys'` logs it, or as what is left of it when the column was dropped."""
    dropped = with_facts(WITHOUT_STATICS, dropped=(DroppedColumn("s", native("text"), AT_US),))
    for log in (LOG, dropped):
        assert [change.kind for change in log.changes(log.row(1, 0, True, **PARTITION))] == ["u"]
        lefts: list[dict[str, Any]] = [{"a": 3}, {"b": 4}]
        for left in lefts:
            with pytest.raises(PoisonRow, match="without a value"):
                log.changes(log.row(1, 0, True, **PARTITION, **left))
    with pytest.raises(PoisonRow, match="columns a, b"):
        WITHOUT_STATICS.changes(WITHOUT_STATICS.row(1, 0, True, **PARTITION))


def test_an_image_tells_that_an_update_of_nothing_was_of_a_row() -> None:
    with pytest.raises(PoisonRow, match="batch_seq_no 1: columns a, b"):
        LOG.changes(LOG.row(1, 0, **PARTITION), LOG.row(9, 1, True, v="x", **PARTITION))


@pytest.mark.parametrize(
    ("code", "left", "is_legal"),
    [
        (5, {"a": 3}, True),
        (6, {"a": 3}, True),
        (5, {}, True),
        (6, {}, False),
        (5, {"b": 4}, False),
        (7, {"a": 3}, True),
        (8, {"a": 3}, True),
        (7, {}, True),
        (8, {}, False),
        (7, {"b": 4}, False),
        (4, {}, True),
        (-4, {}, True),
    ],
)
def test_bounds_lack_what_they_do_not_fix_and_whole_partitions_all(
    code: int, left: dict[str, Any], is_legal: bool
) -> None:
    rows = rows_of(LOG, code, **PARTITION, **left)
    if is_legal:
        assert len(LOG.changes(*rows)) == 1
    else:
        with pytest.raises(PoisonRow, match="without a value"):
            LOG.changes(*rows)


@pytest.mark.parametrize(("lost_us", "is_sure"), [(0, True), (AT_US, True), (AT_US + 1, False)])
def test_what_may_have_lost_something_is_not_taken_for_what_lacks_it(lost_us: int, is_sure: bool) -> None:
    """After the log lost a column of the key nobody can tell a bound that fixes less from one that lost it."""
    log = with_facts(LOG, keys_lost_us=lost_us)
    dense = with_facts(WITHOUT_STATICS, keys_lost_us=lost_us, dense=True)
    doubtful = [
        (log, [log.row(5, 0, **PARTITION), log.row(7, 1, True, **PARTITION)]),
        (log, [log.row(5, 0, **PARTITION, a=1), log.row(7, 1, True, **PARTITION, a=1)]),
        (log, [log.row(5, 0, **KEY), log.row(7, 1, True, **PARTITION)]),
        (log, [log.row(1, 0, True, **PARTITION)]),
        (dense, [dense.row(1, 0, True, **PARTITION, a=1, v="x")]),
    ]
    for made, rows in doubtful:
        if is_sure:
            assert len(made.changes(*rows)) == 1
        else:
            with pytest.raises(PoisonRow, match="without a value"):
                made.changes(*rows)
    for rows in (
        [log.row(1, 0, True, **PARTITION, s="x")],
        [log.row(4, 0, True, **PARTITION)],
        [log.row(2, 0, True, **KEY)],
        [log.row(5, 0, **KEY), log.row(7, 1, True, **KEY)],
    ):
        assert len(log.changes(*rows)) == 1, "nothing can be missing"


def test_rows_of_dense_tables_may_lack_the_end_of_their_clustering_key() -> None:
    dense = with_facts(WITHOUT_STATICS, dense=True)
    writes: list[dict[str, Any]] = [{"v": "x"}, {"deleted": ("v",)}, {}]
    for written in writes:
        (change,) = dense.changes(dense.row(1, 0, True, **PARTITION, a=3, **written))
        assert change.key == KEY | {"b": None}
    lefts: list[dict[str, Any]] = [{}, {"b": 4}]
    for left in lefts:
        with pytest.raises(PoisonRow, match="column"):
            dense.changes(dense.row(1, 0, True, **PARTITION, **left, v="x"))
    for code in (2, 3):
        with pytest.raises(PoisonRow, match="column b"):
            dense.changes(dense.row(code, 0, True, **PARTITION, a=3))


def test_a_column_that_nobody_knows_yet_may_be_static() -> None:
    description = LOG.description
    without = replace(description, columns=tuple(each for each in description.columns if each.name != "s"))
    layout = layout_of(without, log_columns(description))
    assert layout.unknown == ("s",)
    batch = Batch(layout, STREAM, TIME.bytes, [LOG.row(1, 0, True, **PARTITION, s="x")])
    assert len(changes_of(batch)) == 1


def test_the_message_says_which_row_why_and_what_to_do() -> None:
    with pytest.raises(PoisonRow) as error:
        LOG.changes(LOG.row(3, 7, True, **PARTITION))
    for words in (
        *("ks.t", STREAM.hex(), str(TIME), "batch_seq_no 7", "columns a, b"),
        *("RENAME", "cannot be told apart any more", "errors.tolerance=all", "snapshot", "stop writers"),
    ):
        assert words in str(error.value)


# -- what ScyllaDB writes, and the double ---------------------------------------------------------------------------


def described(ddl: str, types: Mapping[str, list[list[str]]] | None = None) -> TableDescription:
    """The table that a statement makes, in whatever keyspace."""
    server = Server()
    for name, fields in (types or {}).items():
        server.run(f"CREATE TYPE ks.{name} ({', '.join(' '.join(field) for field in fields)})")
    server.run(re.sub(r"(?<=CREATE TABLE )\w+\.", "ks.", ddl))
    made = next(each for each in server.engine.schema.all_tables() if not each.name.endswith("_scylla_cdc_log"))
    return TableDescription(
        "ks", made.name, "id", tuple(Column(each.name, each.type, each.kind, each.position) for each in made.columns)
    )


def cells_of(shown: Mapping[str, Any]) -> dict[str, bytes | None]:
    """Cells of a row of a recording: whether there are some is all that counts here."""
    cells: dict[str, bytes | None] = {name: None if value is None else b"" for name, value in shown["values"].items()}
    cells |= {f"cdc$deleted_{name}": b"\1" for name in shown["deleted"]}
    return cells | {f"cdc$deleted_elements_{name}": b"" for name in shown["elements"]}


def batch_of(log: Log, rows: Cells) -> Batch:
    made = [log.row(code, at, at == len(rows) - 1, raw=cells) for at, (code, cells) in enumerate(rows)]
    return Batch(log.layout, STREAM, TIME.bytes, made)


RECORDED = sorted((ROOT / "tests/recordings").glob("*/*[0-9s].json*.gz"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_of_what_scylladb_wrote_nothing_is_refused_but_what_a_rename_left(path: Any) -> None:
    recording = read_recording(path)
    refused = taken = 0
    for log, rows, is_left in recorded(recording):
        try:
            changes_of(batch_of(log, rows))
        except PoisonRow as error:
            assert is_left, f"{error}: {rows}"
            refused += 1
        else:
            assert not is_left, rows
            taken += 1
    assert taken > 20
    assert bool(refused) == isinstance(recording, Histories), "the histories rename a table's key"


def recorded(recording: Any) -> Iterator[tuple[Log, Cells, bool]]:
    """Batches, and whether they are of a time when a column of the key had another name."""
    if isinstance(recording, Seeded):
        for name, ddl in recording.creates:
            log = Log(described(ddl, recording.types))
            for batch in chain.from_iterable(recording.logs[name].values()):
                yield log, [(row["op"], cells_of(row)) for row in batch], False
        return
    assert isinstance(recording, Histories)
    for name, partitions in recording.logs.items():
        log = Log(as_described(recording, name.removesuffix(", dropped")))
        keys = [place.name for place in log.layout.partition_key]
        for rows in partitions.values():
            several: Cells = []
            for row in rows:
                several.append((row["op"], cells_of(row)))
                if row["end"]:
                    yield log, several, any(cells.get(key) is None for _, cells in several for key in keys)
                    several = []


def as_described(recording: Histories, name: str) -> TableDescription:
    """As the table was in the end."""
    lists = [each["columns_after"] for each in recording.statements]
    last = next(found for found in reversed(lists) if any(each[0] == name for each in found))
    found = [each[1:] for each in last if each[0] == name]
    types = {"ut": UserType("ks", "ut", (("a", native("int")), ("bb", native("text"))))}
    return TableDescription(
        "ks", name, "id", tuple(Column(column, parse_type(type_, types), kind, at) for column, kind, at, type_ in found)
    )


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_no_worked_example_is_refused(case: Case) -> None:
    ddl = TABLES[case.table].format(name=f"ks.{case.table}")
    log = Log(described(f"{ddl} {'AND' if ' WITH ' in ddl else 'WITH'} cdc = {{'enabled': true}}"))
    for time in {row.time for row in case.log}:
        rows = [row for row in case.log if row.time == time]
        changes_of(batch_of(log, [(row.operation, dict.fromkeys(row.columns, b"\1")) for row in rows]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(histories())
def test_nothing_that_the_double_writes_is_refused(history: History) -> None:
    ddl, server = create_table(history.shape, "ks.t", history.options), Server()
    server.run(ddl)
    play(server.run, "ks.t", history, server.clock.now_us() + 1000)
    log = Log(described(ddl))
    batches: dict[uuid.UUID, Cells] = defaultdict(list)
    for row in server.rows("SELECT * FROM ks.t_scylla_cdc_log"):
        cells: dict[str, bytes | None] = {name: b"\1" for name in row if name not in _OF_ALL_LOGS}
        batches[row["cdc$time"]].append((row["cdc$operation"], cells))
    for rows in batches.values():
        changes_of(batch_of(log, rows))
