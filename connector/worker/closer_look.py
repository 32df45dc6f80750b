"""What the web page shows beside the status: owners of slots in all processes, dead letters, streams of a table.

In: the supervisor; Kafka's status topic and topic of dead letters; the workers, which are asked. Out: plain documents.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from connector.config import Configuration
from connector.delivery import StoredRecord, partitions_of, read_tail
from connector.timeuuid import ticks_of
from connector.worker.child import Child, instruct
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.instructions import TellStreams
from connector.worker.messages import StreamsMessage
from connector.worker.reports import reported_workers
from connector.worker.settings import kafka_clients
from connector.worker.supervisor import Supervisor

# Of a letter's raw rows; the record in the topic has all of them.
LONGEST = 64 * 1024
SHOWN_CHARACTERS = 4_000
# For a worker to say which streams it has; its turns are shorter, unless it sits in a call.
TELL_SECONDS = 3.0
LOOK_SECONDS = 0.02

_CONTEXT = "__connect.errors."


class CloserLook:
    """Of one service; see `connector.page.Details`."""

    def __init__(self, supervisor: Supervisor, cluster: ConnectCluster) -> None:
        self._supervisor, self._cluster = supervisor, cluster

    def tasks(self) -> Mapping[str, Sequence[int]]:
        return {view.name: self._cluster.numbers(view) for view in self._cluster.own()}

    def slots(self, connector: str) -> Mapping[str, Any] | None:
        configuration = self._configuration(connector)
        if configuration is None:
            return None
        status, reported = self._supervisor.status(), reported_workers(configuration)
        here = {child.pid for child in self._supervisor.children.values()}
        workers = [
            {
                "worker": each.worker,
                "index": each.index,
                "host": each.host,
                "pid": each.pid,
                "here": each.host == status.host and each.pid in here,
                "state": each.state.value,
                "waiting_for": each.waiting_for,
                "slots": list(each.slots),
                "slots_pending": list(each.slots_pending),
                "age_ms": each.age_ms,
                "stale": each.stale,
            }
            for each in reported
        ]
        owners = {str(slot): each.worker for each in reported if not each.stale for slot in each.slots}
        count = max((each.slot_count for each in reported), default=None)
        return {"connector": connector, "slot_count": count, "owners": owners, "workers": workers}

    def dead_letters(self, connector: str, most: int) -> Mapping[str, Any] | None:
        configuration = self._configuration(connector)
        if configuration is None:
            return None
        delivery = configuration.connector.delivery
        if not delivery.dead_letters:
            note = "Changes that cannot become records stop their streams: errors.tolerance is none."
            return {"topic": None, "note": note, "letters": []}
        if not delivery.dead_letter_topic:
            note = "Dead letters are counted and logged, and kept nowhere: errors.deadletterqueue.topic.name is empty."
            return {"topic": None, "note": note, "letters": []}
        clients = kafka_clients(configuration)
        with clients.named():
            topic = delivery.dead_letter_topic
            partitions = partitions_of(clients.admin(), topic) or 0
            records = read_tail(clients, topic, partitions, configuration.group, most, LONGEST)
        newest = sorted(records, key=lambda record: record.timestamp, reverse=True)[:most]
        return {"topic": topic, "letters": [letter(record) for record in newest]}

    def streams(self, connector: str, table: str) -> Mapping[str, Any] | None:
        configuration = self._configuration(connector)
        if configuration is None:
            return None
        known = table in map(str, configuration.connector.reading.tables)
        children = [child for child in self._children(configuration) if child.own] if known else []
        before = {child.index: child.streams.get(table) for child in children}
        for child in children:
            self._supervisor.requests.put(partial(instruct, child, TellStreams(table)))
        deadline = time.monotonic() + TELL_SECONDS
        while not _all_told(children, table, before) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        newest_first = sorted(children, key=lambda child: child.streams.get(table) is before[child.index])
        count, groups = merged({child.index: child.streams.get(table) for child in newest_first})
        return {"connector": connector, "table": table, "count": count, "groups": groups}

    def _configuration(self, connector: str) -> Configuration | None:
        known = self._supervisor.configurations()
        return next((each for each in known if each.connector.name == connector), None)

    def _children(self, configuration: Configuration) -> list[Child]:
        return [child for child in self._supervisor.children.values() if child.group == configuration.group]


def merged(told: Mapping[int, StreamsMessage | None]) -> tuple[int, list[dict[str, Any]]]:
    """How many groups there are, and those that workers tell of: of a slot only what the first of them says. One that
    hangs does not know who has taken over from it."""
    count, groups, taken = 0, [], set[int]()
    for worker, message in told.items():
        if message is None:
            continue
        mine = [group for group in message.groups if group.slot not in taken]
        taken |= {group.slot for group in mine}
        count += message.count - (len(message.groups) - len(mine))
        groups += [{**_without_integers(group.model_dump(mode="json")), "worker": worker} for group in mine]
    return count, groups


def _without_integers(group: dict[str, Any]) -> dict[str, Any]:
    """Whoever reads this may have none of 64 bits, which tokens have."""
    tokens = {name: None if group[name] is None else str(group[name]) for name in ("range_start", "range_end")}
    return group | tokens


def _all_told(children: Sequence[Child], table: str, before: Mapping[int, Any]) -> bool:
    """Messages are replaced as a whole: another object is a newer answer."""
    return all(child.streams.get(table) is not before[child.index] for child in children)


def letter(record: StoredRecord) -> dict[str, Any]:
    """A record of the topic of dead letters; what something else wrote to it is shown as it is."""
    headers = {name: (value or b"").decode(errors="replace") for name, value in record.headers}
    value = record.value or b""
    rows = _rows(value)
    raw = value.decode(errors="replace")
    length, number = headers.get("scylla.cdc.length", ""), headers.get("scylla.cdc.batch_seq_no", "")
    return {
        "partition": record.partition,
        "offset": record.offset,
        "time_ms": record.timestamp,
        "table": headers.get("scylla.cdc.table"),
        "stream_id": headers.get("scylla.cdc.stream_id"),
        "time": headers.get("scylla.cdc.time"),
        "written_ms": _written_ms(headers.get("scylla.cdc.time", "")),
        "batch_seq_no": int(number) if number.lstrip("-").isdecimal() else None,
        "stage": headers.get(f"{_CONTEXT}stage"),
        "exception": headers.get(f"{_CONTEXT}exception.class.name"),
        "message": headers.get(f"{_CONTEXT}exception.message"),
        "length": int(length) if length.isdecimal() else len(value),
        "rows": rows,
        "raw": None if rows is not None else raw[:SHOWN_CHARACTERS],
        "cut": rows is None and (len(raw) > SHOWN_CHARACTERS or length not in ("", str(len(value)))),
    }


def _rows(value: bytes) -> list[dict[str, Any]] | None:
    """Cells by column, as far as they are few and short enough to be looked at."""
    if len(value) > SHOWN_CHARACTERS:
        return None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(value)
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return found
    return None


def _written_ms(text: str) -> int | None:
    with contextlib.suppress(ValueError):
        return ticks_of(uuid.UUID(text).bytes) // 10_000
    return None
