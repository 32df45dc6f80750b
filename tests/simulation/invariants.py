"""What must be true of a service at the end of a simulation, whatever happened to it.

In: the world and the topics. Out: every breach as a line: rows lost, doubled, behind later ones of their key, given up
without being one that came after its stream's end, read without a column that its table had when it was written.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from connector.delivery.records import REPEATED_HEADER
from connector.formats.table_schemas import TABLE_ID
from tests.simulation import plain_schema, snapshot_invariants
from tests.simulation.base_world import DROPPED
from tests.simulation.scheduler import EPOCH
from tests.simulation.service import DEAD_LETTERS, NAME, OFFSETS, SCHEMAS, SIGNALS, Service
from tests.simulation.source_world import Row, Table

Identity = tuple[str, str, int]

READING_SECONDS = 8.0
# For this part of its log's ttl a table is being started: what expires meanwhile need not be told.
START_OF_TTL = 10


def breaches(service: Service) -> list[str]:
    found: list[str] = []
    given_up = _dead_letters(service)
    for table in service.cluster.world.tables:
        found += _of_table(service, table, given_up)
    return found


def missing(service: Service) -> list[str]:
    """Rows that are neither delivered nor given up yet; nor expired before their table was begun, or unread later, if
    somebody said that of it."""
    given_up = _dead_letters(service)
    found: list[str] = []
    for table in service.cluster.world.tables:
        seen = _delivered(service, table)
        done = {identity for identity, _ in seen} | _in_doubt(service, table)
        lost = [
            row for row in table.rows if row.counted and row.identity not in done and row.identity[:2] not in given_up
        ]
        gone = _gone_before(service, table) if lost else 0
        if table.history is not None:
            found += _unfinished(service, table)
            if str(table.name) in service.expired:
                continue  # what a snapshot makes up for, its invariants tell
        found += [
            f"{table.name}: row {row.text} of stream {row.stream.hex()} at {row.ms} lost"
            for row in lost
            if row.ms >= gone
        ]
    return found


def _gone_before(service: Service, table: Table) -> int:
    """Older rows than this (ms) may have expired before anybody came to read them; that was said, if it was to be."""
    before = _unreadable_before(service, table)
    if str(table.name) not in service.expired:
        return before
    # Until slots are restored, and read.
    came = service.closed_until + READING_SECONDS
    return max(before, round((EPOCH + came - table.ttl) * 1000))


def _unreadable_before(service: Service, table: Table) -> int:
    """What was older (ms) when the table was begun was never to be read; or became so while it was being started."""
    began = [
        mark["began"]
        for of, mark in _offsets(service, table)
        if "slot" in of and mark is not None and mark.get("began") is not None
    ]
    ttl_ms = table.ttl * 1000
    return min(began) + ttl_ms // START_OF_TTL - ttl_ms if began else 0


def _lacks_its_beginning(service: Service, table: Table) -> bool:
    before = _unreadable_before(service, table)
    return any(row.ms < before for row in table.rows)


def _of_table(service: Service, table: Table, given_up: Counter[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    rows = {row.identity: row for row in table.all_rows}
    delivered = _delivered(service, table)
    counts = Counter(identity for identity, _ in delivered)
    for identity, row in rows.items():
        # A batch of several rows is one dead letter.
        letters = given_up[identity[:2]]
        if counts[identity] + letters > 1 and not service.positions_lost:
            found.append(f"{table.name}: row {row.text} delivered {counts[identity]} times, given up {letters} times")
        if letters and row.ended is None and (table.renamed is None or row.ms >= table.renamed):
            found.append(f"{table.name}: row {row.text} given up without need")
    found += [f"{table.name}: {identity} was never written" for identity in counts if identity not in rows]
    found += _columns(service, table, rows)
    known = [(rows[identity], partition) for identity, partition in delivered if identity in rows]
    found += _order(service, table, known)
    if table.history is not None:
        found += _of_history(service, table, given_up)
    return found


def _of_history(service: Service, table: Table, given_up: Counter[tuple[str, str]]) -> list[str]:
    """Of the one that had its name before nobody knows which records come last: its log is gone with it."""
    found: list[str] = []
    former = table.former
    for each in [table] if former is None else [former.table, table]:
        assert each.history is not None
        topics = [[record for _, record in service.records(name)] for name in _topics(table)]
        if former is not None:
            of_id, until = str(each.id).encode(), math.inf if each is table else former.dropped
            topics = [
                [one for one in records if dict(one.headers).get(TABLE_ID) == of_id and one.stored_at < until]
                for records in topics
            ]
        lines = snapshot_invariants.breaches(
            each.history,
            *topics,
            given_up={row.key[0] for row in each.rows if row.identity[:2] in given_up},
            asked=sum(one["kind"] == "incremental" for one in snapshots(service, table).values()),
            now_us=service.cluster.now_ms * 1000,
            expired=str(table.name) in service.expired or _lacks_its_beginning(service, table),
            ended=each is not table,
        )
        found += [f"{table.name}: {line}" for line in lines]
    return found


def _topics(table: Table) -> tuple[str, str]:
    """Of changes, and of those that delete several rows."""
    return f"{NAME}.{table.name}", f"{NAME}.{table.name}.range-deletes"


def snapshots(service: Service, table: Table) -> dict[str, dict[str, Any]]:
    """Those of a table, by what is committed last."""
    found: dict[str, dict[str, Any]] = {}
    for of, told in _offsets(service, table):
        if "snapshot" not in of or "behind" in of or told is None:
            continue
        # Each slot has a note of its own of what is needed.
        if (name := of["snapshot"]) not in found or found[name]["began"] <= told["began"]:
            found[name] = told
    return found


def _offsets(service: Service, table: Table) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """What is committed of a table, keys and values."""
    for _, record in service.records(OFFSETS):
        of = json.loads(record.key or b"")[1]
        if (of.get("keyspace_name"), of.get("table_name")) == (table.name.keyspace, table.name.name):
            yield of, None if record.value is None else json.loads(record.value)


def _unfinished(service: Service, table: Table) -> list[str]:
    found = snapshots(service, table)
    names = {"initial", *(name for name, each in found.items() if each["ended"] is None)} - {
        each["kind"] for each in found.values() if each["ended"] is not None
    }
    lost = [f"{table.name}: snapshot {name} has not ended" for name in sorted(names)]
    if "needed" in found and all(
        each["began"] < found["needed"]["began"] for each in found.values() if each["kind"] == "initial"
    ):
        lost.append(f"{table.name}: no snapshot makes up for what has expired")
    signals = service.broker.topics.get(SIGNALS)
    if "asked" in found and signals is not None:
        # Every worker hears all of them; those of other tables only are passed over.
        wanted = [
            at
            for at, record in enumerate(signals.partitions[0].records)
            if record is not None and _concerns(record.value, table)
        ]
        if wanted and found["asked"].get("number", -1) < wanted[-1]:
            lost.append(f"{table.name}: signal {wanted[-1]} is not obeyed")
    return lost


def _concerns(signal: bytes | None, table: Table) -> bool:
    tables = json.loads(signal or b"")["data"].get("data-collections")
    return tables is None or str(table.name) in tables


def blocked(service: Service) -> list[str]:
    """Where readers stand at a transaction just now."""
    topics = service.broker.topics.values()
    partitions = [each for topic in topics for each in topic.partitions if each.stable < each.end]
    return [f"readers of {each.topic} [{each.number}] stand at {each.stable}" for each in partitions]


def _columns(service: Service, table: Table, rows: dict[Identity, Row]) -> list[str]:
    """A record has the columns of its time, and stands behind a schema record that has them."""
    found: list[str] = []
    told: dict[str, int] = {}
    for _, record in service.records(SCHEMAS) if table.columns else ():
        definition = json.loads(record.value or b"")
        if f"{definition['keyspace_name']}.{definition['table_name']}" != str(table.name):
            continue
        for column in table.columns.keys() & {each["name"] for each in definition["columns"]}:
            told[column] = min(record.stored_at, told.get(column, record.stored_at))
    for _, record in service.records(f"{NAME}.{table.name}"):
        value = {"after": None} if record.value is None else service.registry.decoded(record.value)
        if value["after"] is None:
            continue
        row = rows.get(_identity(value))
        if row is not None and table.history is None and (wrong := _wrong_values(table, row, value["after"])):
            found.append(f"{table.name}: row {row.text}, written at {row.ms}: {wrong}")
        for column, added in table.columns.items():
            if column in value["after"] and record.stored_at < told.get(column, record.stored_at + 1):
                found.append(f"{table.name}: a record with column {column} before its schema record")
            elif row is not None and _shown_at(service, row) >= added and column not in value["after"]:
                found.append(f"{table.name}: row {row.text} without column {column}, which is older")
    return found


def _wrong_values(table: Table, row: Row, after: dict[str, Any]) -> str | None:
    """What a record says and nobody has written. What was written before its column was dropped may be gone."""
    keys = {name: after.get(name) for name in ("pk", "ck", "c2", "c3") if name in after}
    if sorted(map(int, keys.values())) != sorted(row.key):
        return f"its key is {keys}, not {row.key}"
    expected = plain_schema.written(table, row)
    for name in {*after, *expected} - keys.keys():
        told, true = after.get(name), expected.get(name)
        told = told["value"] if isinstance(told, dict) else told
        may_be_gone = table.again is not None and name == DROPPED and row.ms < table.again.dropped
        if told != true and not (told is None and may_be_gone):
            return f"{name} is {told!r}, not {true!r}"
    return None


def _shown_at(service: Service, row: Row) -> int:
    """From when on every page has it with the columns of that time; of nodes that are deaf the reader learns first."""
    return row.ms if service.cluster.world.deaf else row.visible_at


def _order(service: Service, table: Table, delivered: list[tuple[Row, int]]) -> list[str]:
    if service.positions_lost:
        return []
    found: list[str] = []
    last: dict[tuple[tuple[int, int], int], Row] = {}
    former = table.former
    has_two_keys = former is not None and former.table.clustering != table.clustering
    is_another = service.broker.changed or table.renamed is not None or has_two_keys
    for row, partition in delivered:
        # By another name of its column the key is another one, and may be in another partition; and where topics are
        # deleted or grow it may be in another one as well.
        key = row.key, partition if is_another else 0
        before = last.get(key)
        if before is not None and before.order > row.order:
            found.append(f"{table.name}: key {row.key}: row {row.text} behind row {before.text}")
        last[key] = row
    return found


def _delivered(service: Service, table: Table) -> list[tuple[Identity, int]]:
    """Without what is there twice and says so."""
    return [
        (_identity(value), partition)
        for topic in _topics(table)
        for partition, record in service.records(topic)
        if record.value is not None and REPEATED_HEADER not in dict(record.headers)
        if (value := service.registry.decoded(record.value)).get("op") != "r"
    ]


def _in_doubt(service: Service, table: Table) -> set[Identity]:
    """Rows that were in a topic when it was deleted, and whose transaction had no end there yet."""
    stored = [record for topic in _topics(table) for record in service.undecided(topic)]
    values = [service.registry.decoded(record.value) for record in stored if record.value is not None]
    return {_identity(value) for value in values if value.get("op") != "r"}


def _identity(value: Any) -> Identity:
    source = value["source"]
    return source["stream_id"].removeprefix("0x"), source["time"], source["batch_seq_no"]


def _dead_letters(service: Service) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for _, record in service.records(DEAD_LETTERS):
        headers = {name: (text or b"").decode() for name, text in record.headers}
        found[(headers["scylla.cdc.stream_id"].removeprefix("0x"), headers["scylla.cdc.time"])] += 1
    return found
