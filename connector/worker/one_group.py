"""One connector is one group: before a worker uses a slot, no other group may run the connector of its name.

In: Kafka, the configuration. Out: nothing, or `ForeignGroup`, which says who is in the way. The rules are in
`connector.topology.tenure`; asking and writing is done here. Called by one chore at a time.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Sequence
from typing import Any

from connector.config import Configuration
from connector.delivery import (
    GroupMember,
    KafkaClients,
    ReportingProducer,
    compact_json,
    decode_offsets_entry,
    encode_offsets_key,
    group_members,
    listed_groups,
    parse_json,
    scan_partition,
)
from connector.errors import ConfigurationError, ForeignGroup, Problem, RetriableDeliveryError, TransactionAborted
from connector.topology import (
    TENURE_SLOT,
    InTheWay,
    Look,
    Members,
    Tenure,
    Unrecorded,
    Write,
    holder,
    parse_tenure,
    take,
    tenure_entry,
)

log = logging.getLogger(__name__)

WRITE_SECONDS = 15.0
SHOWN = 3


class OneGroup:
    """Of one connector."""

    def __init__(self, configuration: Configuration, clients: KafkaClients, who: str) -> None:
        self._connector, self._clients_name = configuration.connector.name, configuration.client_name
        self._topic = configuration.connector.delivery.offset_topic
        self._group = configuration.group
        self._group_id = configuration.worker.group_id
        self._clients = clients
        self._who = who
        # Up to which offset slot 0 is known, and the newest record of each key, in the topic's order.
        self._read_to = 0
        self._tenures: dict[bytes, Tenure] = {}
        self._one_at_a_time = threading.Lock()

    def take(self) -> None:
        """Raises `ForeignGroup` while another group has members. To be called as a member of ours, after every join."""
        with self._one_at_a_time:
            self._refuse_other_topics()
            held = holder(self._look())
            before = self._group if held is None else held.group
            steps = take(self._group, secrets.token_hex(4))
            step: Any = next(steps)
            while True:
                try:
                    step = steps.send(self._answer(step))
                except StopIteration as end:
                    if end.value is not None:
                        raise self._foreign(end.value) from None
                    break
            if before != self._group:
                log.warning("consumer group %s runs the connector from now on, instead of %s", self._group, before)

    def running(self) -> list[str]:
        """The members of whatever group runs the connector, ours or another one."""
        own = [str(member) for member in group_members(self._clients, [self._group])]
        with self._one_at_a_time:
            others = {each.group for each in self._look()} - {self._group}
        found = own + [str(member) for member in group_members(self._clients, others)]
        if not found and (old := self._unrecorded()) is not None:
            found = list(old.members)
        return found

    # -- steps -----------------------------------------------------------------------------------------------

    def _answer(self, step: Any) -> Any:
        if isinstance(step, Look):
            return self._look()
        if isinstance(step, Write):
            return self._write(step.tenure, step.withdrawn)
        if isinstance(step, Members):
            return [str(member) for member in group_members(self._clients, [step.group])]
        assert isinstance(step, Unrecorded)
        return self._unrecorded()

    def _look(self) -> Sequence[Tenure]:
        prefix = b"[" + compact_json(self._connector) + b',{"group":'
        records, self._read_to = scan_partition(
            self._clients, self._topic, TENURE_SLOT, self._group, prefix, self._read_to
        )
        for record in records:
            assert record.key is not None
            self._tenures.pop(record.key, None)
            tenure = _parsed(record.key, record.value)
            if tenure is not None:
                self._tenures[record.key] = tenure
        return list(self._tenures.values())

    def _write(self, tenure: Tenure, withdrawn: bool) -> None:
        # Without a transaction: whoever looks has to see it at once, and must not wait for what others left open.
        producer = ReportingProducer(self._clients)
        entry = tenure_entry(tenure, self._who, round(time.time() * 1000))
        try:
            key = encode_offsets_key(self._connector, entry.key)
            value = None if withdrawn or entry.value is None else compact_json(entry.value)
            producer.produce_to(self._topic, entry.slot, key, value)
            producer.flush(time.monotonic() + WRITE_SECONDS)
        except TransactionAborted as error:
            raise RetriableDeliveryError(f"recording the consumer group: {error}") from None
        finally:
            producer.close()

    def _unrecorded(self) -> InTheWay | None:
        """Workers of versions that recorded no group: they are named in marks, and their groups after the connector."""
        owners = self._owners()
        others = [name for name in listed_groups(self._clients) if name.endswith(f"-{self._connector}")]
        for group in sorted({*others} - {self._group}) if owners else ():
            members = [each for each in group_members(self._clients, [group]) if each.client_id in owners]
            if members:
                return InTheWay(group, tuple(map(str, members)))
        return None

    def _owners(self) -> set[str]:
        """Whom the marks of the slot name: whoever runs has one in every slot."""
        prefix = b"[" + compact_json(self._connector) + b","
        newest, _ = scan_partition(self._clients, self._topic, TENURE_SLOT, self._group, prefix, 0)
        entries = (
            decode_offsets_entry(self._connector, TENURE_SLOT, each.key, each.value, self._topic, each.offset)
            for each in newest
        )
        return {entry.owner for entry in entries if entry is not None and entry.owner is not None}

    def _refuse_other_topics(self) -> None:
        """Members of one group that were given another topic share no slot with us: each topic is read by itself."""
        for member in self._ours(group_members(self._clients, [self._group])):
            for topic in sorted(member.topics - {self._topic}):
                raise ForeignGroup(
                    f"connector {self._connector} runs already, with another offsets topic, {topic} ({member}): "
                    "every change would be delivered twice"
                )

    def _ours(self, members: Sequence[GroupMember]) -> list[GroupMember]:
        return [member for member in members if member.client_id.startswith(f"{self._clients_name}-")]

    def _foreign(self, way: InTheWay) -> ForeignGroup:
        more = len(way.members) - SHOWN
        shown = ", ".join(way.members[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        members = f" ({shown})" if way.members else ""
        return ForeignGroup(
            f"connector {self._connector} is run already by the consumer group {way.group}{members}, and not by ours, "
            f"{self._group}: under two groups every change would be delivered twice"
        )

    def refused(self, error: ForeignGroup) -> ConfigurationError:
        """For the end of the process: what to do about it."""
        property_name = "offset.storage.topic" if "another offsets topic" in str(error) else "group.id"
        value = self._topic if property_name == "offset.storage.topic" else self._group_id
        advice = (
            f"stop the other workers, or run these with the same {property_name}, or give this connector another name; "
            "members that were killed leave their group after their session.timeout.ms"
        )
        return ConfigurationError([Problem(property_name, str(error), value, advice)])


def _parsed(key: bytes, value: bytes | None) -> Tenure | None:
    try:
        members = parse_json(key)[1]
        content = None if value is None else parse_json(value)
    except (ValueError, LookupError, TypeError):
        return None
    if not isinstance(members, dict) or not isinstance(content, dict):
        return None
    return parse_tenure(members, content)
