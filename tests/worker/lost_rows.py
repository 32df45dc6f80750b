"""The story of rows that were not delivered, for a soak that has failed: where their copies are, what is committed.

In: the service, its servers, the rows that are missing. Out: lines for people: the rows with their streams and slots,
their copies in the data topic whatever became of them, the positions of their slots, and what the broker itself wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cassandra.cluster import Session

from connector.table_name import TableName
from connector.timeuuid import millis_of
from connector.topology.slots import slot_of
from embedded.kafka import EmbeddedKafka
from tests.worker.harness import RowsMissing, Service

ROWS = 12
ENTRIES = 40
BATCHES = 24
SLOTS = 6

# The head of a batch of records in a broker's file, and where a control record in it says what it is.
HEADER = struct.Struct(">qiibihiqqqhii")
PREFIX, CONTROL, TYPE_AT = 12, 0x20, 7


def story(service: Service, session: Session, kafka: object, lost: RowsMissing) -> str:
    """Never fails itself: it is told because of another failure."""
    try:
        return "\n".join(_lines(service, session, kafka, lost))
    except Exception as error:
        return f"{lost}; its story cannot be told: {type(error).__name__}: {error}"


def _lines(service: Service, session: Session, kafka: object, lost: RowsMissing) -> Iterator[str]:
    yield f"== {lost}"
    rows = sorted(lost.rows, key=lambda row: UUID(row[1]).time)
    sets = dict(_sets(session, lost.table))
    topic = service.topic(lost.table)
    copies: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for record in service.delivered(topic, "read_uncommitted"):
        if record["value"] is not None:
            source = record["value"]["source"]
            copies.setdefault((source["stream_id"], source["time"], source["batch_seq_no"]), []).append(record)
    slots: set[int] = set()
    places: dict[int, int] = {}
    for stream, time, number in rows[:ROWS]:
        opened, ended, range_end = sets.get(stream, (None, None, None))
        slot = None if range_end is None else slot_of(_name(lost.table), range_end, SLOTS)
        slots |= set() if slot is None else {slot}
        where = [f"[{each['partition']}] at {each['offset']}, made {_moment(each['timestamp'])}"
                 for each in copies.get((stream, time, number), [])]  # fmt: skip
        for each in copies.get((stream, time, number), []):
            places.setdefault(each["partition"], each["offset"])
        yield (
            f"row {_moment(millis_of(UUID(time).bytes))} #{number} of {stream}, {_moment(opened)} to {_moment(ended)}, "
            f"slot {slot}: copies that are not committed: {'; '.join(where) or 'none'}"
        )
    first = millis_of(UUID(rows[0][1]).bytes)
    for slot in sorted(slots):
        yield from _entries(service, slot, lost.table, first)
    if isinstance(kafka, EmbeddedKafka):
        for partition, offset in sorted(places.items()):
            yield f"-- {topic} [{partition}] around {offset}, as the broker has it"
            yield from _batches(kafka, f"{topic}-{partition}", offset)


def _name(table: str) -> TableName:
    return TableName(*table.split("."))


def _moment(ms: int | None) -> str:
    return "?" if ms is None else f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S.%f}"[:-3]


def _sets(session: Session, table: str) -> Iterator[tuple[str, tuple[int | None, int | None, int | None]]]:
    """Of each stream when its set began, when the next one did, and where its range ends."""
    found: dict[int, dict[str, int]] = {}
    keyspace, name = table.split(".")
    for row in session.execute(
        "SELECT timestamp, stream_id FROM system.cdc_streams WHERE keyspace_name = %s AND table_name = %s",
        (keyspace, name),
    ):
        of = found.setdefault(round(row.timestamp.replace(tzinfo=UTC).timestamp() * 1000), {})
        of[row.stream_id.hex()] = int.from_bytes(row.stream_id[:8], "big", signed=True)
    vnodes = "SELECT time, range_end, streams FROM system_distributed.cdc_streams_descriptions_v2"
    for row in [] if found else session.execute(vnodes):
        of = found.setdefault(round(row.time.replace(tzinfo=UTC).timestamp() * 1000), {})
        of.update({stream.hex(): row.range_end for stream in row.streams})
    begins = sorted(found)
    for at, begin in enumerate(begins):
        end = begins[at + 1] if at + 1 < len(begins) else None
        for stream, range_end in found[begin].items():
            yield stream, (begin, end, range_end)


def _entries(service: Service, slot: int, table: str, first: int) -> Iterator[str]:
    topic = f"{service.name}-offsets"
    committed = {(each["partition"], each["offset"]) for each in service.delivered(topic)}
    keyspace, name = table.split(".")
    about = f'"keyspace_name":"{keyspace}","table_name":"{name}"'.encode()
    entries = [
        each
        for each in service.delivered(topic, "read_uncommitted")
        if each["partition"] == slot and about in (each["key"] or b"") and each["timestamp"] >= first - 5_000
    ]
    yield f"-- slot {slot}: {len(entries)} entries of {table} since 5 s before"
    for each in entries[:ENTRIES]:
        key = (each["key"] or b"").decode().partition(about.decode())[2].strip(",}]")
        fate = "" if (slot, each["offset"]) in committed else "NOT COMMITTED "
        yield f"{each['offset']} {_moment(each['timestamp'])} {fate}{key}: {each['value']} {_name_of(each) or ''}"


def _name_of(entry: dict[str, Any]) -> str | None:
    return next((value.decode()[:8] for name, value in entry["headers"] or () if name == "commit"), None)


def _batches(kafka: EmbeddedKafka, folder: str, offset: int) -> Iterator[str]:
    """Of the file itself: no client tells which producer wrote what, nor of the ends of transactions."""
    found: list[tuple[int, str]] = []
    for path in sorted((kafka.data / "logs" / folder).glob("*.log")):
        raw, at = path.read_bytes(), 0
        while at + HEADER.size <= len(raw):
            base, length, _, _, _, attributes, last, made, _, producer, epoch, _, count = HEADER.unpack_from(raw, at)
            if length <= 0:
                break
            what = f"{count} records"
            if attributes & CONTROL:
                what = "COMMIT" if raw[at + HEADER.size + TYPE_AT + 1] else "ABORT"
            found.append((base + last, f"{base}-{base + last} {_moment(made)} producer {producer}/{epoch}: {what}"))
            at += PREFIX + length
    after = [line for last, line in found if last >= offset]
    before = [line for last, line in found if last < offset]
    yield from [*before[-3:], *after[: BATCHES - 3]]
