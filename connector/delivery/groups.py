"""Consumer groups, as the broker describes them: who is a member, and which partitions it was given.

In: a group's name. Out: its members. Raises errors of ``connector.errors``; a group that does not exist has no members.
The login is that of the group's members: the one that must have a right to it.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from connector.delivery.clients import COORDINATOR_SECONDS, KafkaClients
from connector.delivery.failures import translated
from connector.errors import RetriableDeliveryError

CALL_SECONDS = 10.0
PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class GroupMember:
    """``topics``: those of which it was given partitions."""

    client_id: str
    host: str
    topics: frozenset[str]

    def __str__(self) -> str:
        return f"{self.client_id} on {self.host.lstrip('/')}"


def group_members(clients: KafkaClients, groups: Collection[str], patience: float = 15.0) -> list[GroupMember]:
    """The members of all of ``groups``; asks again while the broker does not answer."""
    if not groups:
        return []
    deadline = time.monotonic() + patience
    while True:
        # A new one each time: a question that is not answered goes with its client.
        admin = clients.members_admin()
        try:
            described = admin.describe_consumer_groups(sorted(groups), request_timeout=COORDINATOR_SECONDS)
            return [
                GroupMember(
                    member.client_id,
                    member.host,
                    frozenset(each.topic for each in (member.assignment.topic_partitions if member.assignment else [])),
                )
                for group in sorted(groups)
                for member in _described(described[group])
            ]
        except KafkaException as caught:
            error = translated(caught.args[0], f"describing consumer group {', '.join(sorted(groups))}")
            if not isinstance(error, RetriableDeliveryError) or time.monotonic() >= deadline:
                raise error from None
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise RetriableDeliveryError(
                    f"describing consumer group {', '.join(sorted(groups))}: the broker did not answer in time"
                ) from None
        time.sleep(PAUSE_SECONDS)


def _described(future: Any) -> list[Any]:
    try:
        return list(future.result(timeout=CALL_SECONDS).members)
    except KafkaException as caught:
        if caught.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return []
        raise


def listed_groups(clients: KafkaClients) -> list[str]:
    """The groups that we may see, by whichever login."""
    found, makers = set[str](), [clients.members_admin]
    if clients.admin_properties != clients.consumer_properties:
        makers.append(clients.admin)
    for made in makers:
        admin = made()
        try:
            listed = admin.list_consumer_groups(request_timeout=CALL_SECONDS).result()
        except KafkaException as caught:
            raise translated(caught.args[0], "listing consumer groups") from None
        found |= {each.group_id for each in listed.valid}
    return sorted(found)
