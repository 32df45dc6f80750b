"""Taking over from the Java connector: its offsets in Kafka Connect's topic become positions of ours.

In: a configuration, Connect's offsets topic or file, the Java connector's name. Out: marks and positions, written in
one transaction, and a report of what was found. Nothing is skipped: a batch may come once more, where Java's own
offsets cannot tell how far inside it they are, and streams without an offset are read from where Java would begin them.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connector.config import Configuration
from connector.delivery import READ_COMMITTED, KafkaClients, ensure_topics, parse_json, partitions_of, read_topic
from connector.errors import CdcError
from connector.offsets_entry import OffsetsEntry
from connector.source import (
    Connection,
    StreamSets,
    TabletStreams,
    VnodeGenerations,
    connection_settings,
    describe_table,
    instant,
)
from connector.table_name import TableName
from connector.timeuuid import millis_of
from connector.topology import Mark, MarkKey, PositionKey, mark_entry, position_entry, slot_of
from connector.worker.java_positions_file import read_positions_file
from connector.worker.java_tasks import JavaOffset, Resumed, resumed, sets_wanted
from connector.worker.positions import Positions
from connector.worker.settings import kafka_clients, offsets_spec


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Of a table: so many ``streams`` resume where Java stopped, the earliest at ``read_to``. So many ``unread`` ones
    had no offset; they begin at ``unread_from``, with ``generation`` or later."""

    generation: int
    streams: int
    read_to: int
    unread: int = 0
    unread_from: int = 0

    def document(self) -> dict[str, Any]:
        return {
            "streams": self.streams,
            "read_to": self.read_to,
            "generation": self.generation,
            "without_offset": self.unread,
            "without_offset_from": self.unread_from if self.unread else None,
        }

    def lines(self, name: str) -> Iterator[str]:
        if self.streams:
            yield f"{name}: positions of {self.streams} streams taken over, the earliest at {self.read_to}"
        if self.unread:
            begin = "the beginning of" if self.unread_from == self.generation else f"{self.unread_from} on in"
            yield (
                f"{name}: {self.unread} streams had no offset: read from {begin} generation {self.generation} "
                f"({instant(self.generation / 1000)})"
            )


@dataclass(slots=True)
class ImportReport:
    """What was taken over; ``problems`` are offsets that could not be used, and why. ``new``: tables without any."""

    connector: str
    tables: dict[str, TakenOver] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return {
            "connector": self.connector,
            "tables": {name: taken.document() for name, taken in self.tables.items()},
            "new_tables": self.new,
            "problems": self.problems,
        }

    def text(self) -> str:
        lines = [line for name, taken in self.tables.items() for line in taken.lines(name)]
        lines += [f"{name}: no offsets, so it begins as a new table" for name in self.new]
        return "\n".join(lines + [f"not used: {problem}" for problem in self.problems])


def import_offsets(
    configuration: Configuration, source: str | Path, java_name: str, tables: Iterable[TableName] | None = None
) -> ImportReport:
    """Read, translate, write: of all tables of the connector, or of ``tables``. ``source`` is a topic, or
    `connect-standalone`'s file.

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
    wanted = set(configuration.connector.reading.tables if tables is None else tables)
    offsets = [offset for offset in offsets if offset.table in wanted]
    if not offsets:
        place = f"topic {source}" if of_file is None else str(source)
        of_what = "the tables of this one" if tables is None else ", ".join(map(str, sorted(wanted)))
        raise CdcError(f"{place} has no offsets of connector {java_name} for {of_what}")
    owner = f"{configuration.connector.name}-import-{secrets.token_hex(4)}"
    slots = positions.slots()
    entries: list[OffsetsEntry] = []
    lookback_ms = configuration.connector.reading.initial_lookback_ms
    connection = Connection(connection_settings(configuration.connector.connection))
    connection.open()
    try:
        for host in connection.hosts()[:1]:
            connection.sample_clock(host)
        for table in sorted(wanted):
            mine = [offset for offset in offsets if offset.table == table]
            found = _resumed(connection, table, mine, lookback_ms, report) if mine else None
            if found is not None:
                entries += position_entries(table, found, slots, owner)
                taken, unread = len(found.places) - len(found.unread), len(found.unread)
                report.tables[str(table)] = TakenOver(
                    found.generation, taken, found.earliest, unread, found.unread_from
                )
            elif not mine:
                report.new.append(str(table))
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


def position_entries(table: TableName, found: Resumed, slots: int, owner: str) -> list[OffsetsEntry]:
    """What says this in the offsets topic. Each stream of the generation has a position, so that marks only speak of
    those that are opened by later ones: these start where they were opened, as Java never visited them."""
    entries: list[OffsetsEntry] = []
    reached: dict[int, int] = {}
    for stream, place in found.places.items():
        slot = slot_of(table, found.ranges[stream], slots)
        entries.append(position_entry(slot, PositionKey(table, stream), place))
        # One that nobody has read holds no others back: a mark behind the log's TTL would say that they lack changes.
        if stream not in found.unread:
            reached[slot] = min(place.read_to, reached.get(slot, place.read_to))
    for slot in range(slots):
        read_to = reached.get(slot, found.earliest)
        mark = Mark(read_to=read_to, stream_set=found.generation, start=found.generation, owner=owner)
        entries.append(mark_entry(MarkKey(table, slot, slots), mark))
    return entries


def _resumed(
    connection: Connection, table: TableName, offsets: list[JavaOffset], lookback_ms: int, report: ImportReport
) -> Resumed | None:
    """None, with a problem, where the server lists none of the generations any more."""
    described = describe_table(connection, table)
    source: StreamSets = TabletStreams(connection, table) if described.tablets else VnodeGenerations(connection)
    listed, ttl = source.listed(), described.description.cdc.ttl
    wanted = sets_wanted(offsets, listed, connection.clock.now_ms() - ttl * 1000 if ttl else 0)
    newest = max(offset.generation for offset in offsets)
    if newest not in listed:
        report.problems.append(f"{table}: the server does not list generation {newest}")
    if not wanted and described.tablets and listed and newest < listed[0]:
        # Sets of tablets are forgotten when all of their changes have expired: Java begins with the first that is left.
        wanted = list(listed[:1])
    return resumed(offsets, listed, source.fetched(wanted), lookback_ms) if wanted else None


def _last_values(clients: KafkaClients, configuration: Configuration, topic: str) -> dict[bytes, bytes | None]:
    partitions = partitions_of(clients.admin(), topic)
    if not partitions:
        raise CdcError(f"there is no topic {topic}; name Kafka Connect's offsets topic with --from-topic")
    records = read_topic(clients, topic, partitions, configuration.group, READ_COMMITTED)
    return {record.key: record.value for record in records if record.key is not None}
