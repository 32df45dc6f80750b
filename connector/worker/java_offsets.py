"""Taking over from the Java connector: its offsets in Kafka Connect's topic become positions of ours.

In: a configuration, Connect's offsets topic or file, the Java connector's name. Out: marks and positions, written in
one transaction, and a report of what was found. Nothing is skipped: a batch may come once more, where Java's own
offsets cannot tell how far inside it they are.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.config import Configuration
from connector.delivery import READ_COMMITTED, KafkaClients, ensure_topics, parse_json, read_topic, topic_partitions
from connector.errors import CdcError
from connector.offsets_entry import OffsetsEntry
from connector.source import (
    Connection,
    StreamSets,
    TabletStreams,
    VnodeGenerations,
    connection_settings,
    describe_table,
)
from connector.table_name import TableName
from connector.timeuuid import millis_of, time_key
from connector.topology import (
    Mark,
    MarkKey,
    Position,
    PositionKey,
    StreamId,
    StreamSet,
    mark_entry,
    position_entry,
    slot_of,
)
from connector.worker.java_positions_file import read_positions_file
from connector.worker.positions import Positions
from connector.worker.settings import kafka_clients, offsets_spec

# Newer versions of the Java library give each tablet's stream a task of its own, numbered behind all vnodes: by the
# stream's place in the set, ids compared as Java compares byte buffers.
FIRST_TABLET_TASK = 1 << 22


@dataclass(frozen=True, slots=True)
class JavaOffset:
    """One task's offset. Times are the UUIDs' milliseconds; Java reads up to and with all of ``window_end``'s."""

    table: TableName
    generation: int
    vnode: int
    window_start: int
    window_end: int
    change_stream: bytes | None = None
    change_time: bytes | None = None


@dataclass(slots=True)
class ImportReport:
    """What was taken over; `problems` are offsets that could not be used, and why."""

    connector: str
    streams: dict[str, int] = field(default_factory=dict)
    from_ms: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return {
            "connector": self.connector,
            "tables": {name: {"streams": self.streams[name], "read_to": self.from_ms[name]} for name in self.streams},
            "problems": self.problems,
        }

    def text(self) -> str:
        lines = [
            f"{name}: positions of {count} streams taken over, the earliest at {self.from_ms[name]}"
            for name, count in self.streams.items()
        ]
        return "\n".join(lines + [f"not used: {problem}" for problem in self.problems])


def import_offsets(configuration: Configuration, source: str | Path, java_name: str) -> ImportReport:
    """Read, translate, write. ``source`` is a topic, or `connect-standalone`'s file.

    Refuses while our workers run, and when there is nothing to take over.
    """
    of_file = read_positions_file(source) if isinstance(source, Path) else None
    positions = Positions(configuration)
    clients = kafka_clients(configuration)
    with clients.named():
        ensure_topics(clients.admin(), [offsets_spec(configuration)])
    positions.refuse_while_running()
    report = ImportReport(java_name)
    values = _last_values(clients, configuration, str(source)) if of_file is None else of_file
    offsets = list(java_offsets(values, java_name, report.problems))
    wanted = set(configuration.connector.reading.tables)
    offsets = [offset for offset in offsets if offset.table in wanted]
    if not offsets:
        place = f"topic {source}" if of_file is None else str(source)
        raise CdcError(f"{place} has no offsets of connector {java_name} for the tables of this one")
    owner = f"{configuration.connector.name}-import-{secrets.token_hex(4)}"
    slots = positions.slots()
    entries: list[OffsetsEntry] = []
    connection = Connection(connection_settings(configuration.connector.connection))
    connection.open()
    try:
        for table in sorted({offset.table for offset in offsets}):
            mine = [offset for offset in offsets if offset.table == table]
            sets = _sets(connection, table, {offset.generation for offset in mine}, report)
            entries += _entries(table, mine, sets, slots, owner, report)
    finally:
        connection.close()
    if not entries:
        raise CdcError("none of the offsets could be used: " + "; ".join(report.problems))
    positions.write(entries, owner)
    return report


def java_offsets(values: Mapping[bytes, bytes | None], java_name: str, problems: list[str]) -> Iterable[JavaOffset]:
    """The offsets among the records of a Connect offsets topic."""
    for raw_key, raw_value in values.items():
        try:
            name, where = parse_json(raw_key)
        except (ValueError, TypeError):
            continue
        if name != java_name or raw_value is None or not isinstance(where, dict) or "vnode_id" not in where:
            continue
        try:
            value = parse_json(raw_value)
            change_stream = value.get("change_id_stream_id")
            change_time = value.get("change_id_time")
            yield JavaOffset(
                TableName(where["keyspace_name"], where["table_name"]),
                int(where["generation_start"]),
                int(where["vnode_id"]),
                millis_of(uuid.UUID(value["window_start"]).bytes),
                millis_of(uuid.UUID(value["window_end"]).bytes),
                bytes.fromhex(change_stream.removeprefix("0x")) if change_stream else None,
                uuid.UUID(change_time).bytes if change_time else None,
            )
        except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{raw_key.decode(errors='replace')}: {error}")


def stream_positions(offset: JavaOffset, streams: Iterable[bytes]) -> dict[bytes, Position]:
    """Where each stream of a task resumes.

    Java reads a task's streams one after the other, in the order of their ids as signed bytes, each through the whole
    window. So behind the named stream none was read, before it all were; the named one resumes *at* its change's time,
    whose batch may have been delivered in part, since the offset moves with every row of it.
    """
    if offset.change_stream is None or offset.change_time is None:
        return {stream: Position(offset.window_start) for stream in streams}
    named = java_order(offset.change_stream)
    found: dict[bytes, Position] = {}
    for stream in streams:
        order = java_order(stream)
        if order < named:
            found[stream] = Position(offset.window_end + 1)
        elif order > named:
            found[stream] = Position(offset.window_start)
        else:
            found[stream] = Position(millis_of(offset.change_time), just_before(offset.change_time))
    return found


def java_order(stream: bytes) -> bytes:
    """Sorts as Java compares byte buffers: byte by byte, signed."""
    return bytes(byte ^ 0x80 for byte in stream)


def just_before(time_uuid: bytes) -> bytes:
    """The time UUID right before this one in ScyllaDB's order, so that "behind it" begins with this one."""
    low = int.from_bytes(bytes(byte ^ 0x80 for byte in time_uuid[8:]), "big")
    if low == 0:
        # Nothing of this tick comes before; a row of the tick before cannot lie between two of one stream's window.
        return time_uuid
    previous = bytes(byte ^ 0x80 for byte in (low - 1).to_bytes(8, "big"))
    before = time_uuid[:8] + previous
    assert time_key(before) < time_key(time_uuid)
    return before


def _entries(
    table: TableName,
    offsets: list[JavaOffset],
    sets: Mapping[int, StreamSet],
    slots: int,
    owner: str,
    report: ImportReport,
) -> list[OffsetsEntry]:
    placed: dict[bytes, tuple[int, Position]] = {}
    for offset in offsets:
        streams = _streams_of(offset, sets, report)
        for stream, position in stream_positions(offset, streams).items():
            slot = slot_of(table, streams[stream], slots)
            # A stream's own newer offset rules over the one that all streams of a tablets table once shared.
            if stream not in placed or offset.vnode >= FIRST_TABLET_TASK:
                placed[stream] = (slot, position)
    if not placed:
        return []
    earliest = min(position.read_to for _, position in placed.values())
    generation = min(offset.generation for offset in offsets if offset.generation in sets)
    entries = [
        position_entry(slot, PositionKey(table, stream), position) for stream, (slot, position) in placed.items()
    ]
    # Streams opened by later generations start where they were opened; Java never visited them.
    mark = Mark(read_to=earliest, stream_set=generation, start=earliest, owner=owner)
    entries += [mark_entry(MarkKey(table, slot, slots), mark) for slot in range(slots)]
    report.streams[str(table)] = len(placed)
    report.from_ms[str(table)] = earliest
    return entries


def _streams_of(offset: JavaOffset, sets: Mapping[int, StreamSet], report: ImportReport) -> dict[bytes, int]:
    """The streams that a task read, with the end of each one's range."""
    stream_set = sets.get(offset.generation)
    if stream_set is None:
        report.problems.append(
            f"{offset.table}, vnode {offset.vnode}: the server does not list generation {offset.generation} any more"
        )
        return {}
    everything = {stream: group.range_end for group in stream_set.groups for stream in group.streams}
    if offset.vnode >= FIRST_TABLET_TASK:
        if offset.change_stream in everything:
            return {offset.change_stream: everything[offset.change_stream]}
        ordered = sorted(everything, key=java_order)
        index = offset.vnode - FIRST_TABLET_TASK
        return {ordered[index]: everything[ordered[index]]} if index < len(ordered) else {}
    return {stream: end for stream, end in everything.items() if (StreamId.parse(stream).index or 0) == offset.vnode}


def _sets(
    connection: Connection, table: TableName, generations: set[int], report: ImportReport
) -> dict[int, StreamSet]:
    described = describe_table(connection, table)
    source: StreamSets = TabletStreams(connection, table) if described.tablets else VnodeGenerations(connection)
    listed = source.listed()
    return source.fetched(sorted(generations & set(listed)))


def _last_values(clients: KafkaClients, configuration: Configuration, topic: str) -> dict[bytes, bytes | None]:
    partitions = topic_partitions(clients.admin()).get(topic)
    if not partitions:
        raise CdcError(f"there is no topic {topic}; name Kafka Connect's offsets topic with --from-topic")
    records = read_topic(clients, topic, partitions, configuration.group, READ_COMMITTED)
    return {record.key: record.value for record in records if record.key is not None}
