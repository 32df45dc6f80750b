"""The group coordinator of the simulated Kafka: members, generations, cooperative rebalances, offsets in transactions.

In: what members ask, and that they are still there. Out: assignments, by generation; the refusal of whoever is no
member any more. A slot is given to a new owner only after its old one has let go of it, or was thrown out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import KafkaError

from tests.simulation.scheduler import Scheduler


class Client(Protocol):
    """The consumer behind a member, as the coordinator's answers reach it."""

    @property
    def topic(self) -> str: ...
    def told_to_join(self) -> None: ...
    def assigned(self, generation: int, partitions: frozenset[int]) -> None: ...


@dataclass(eq=False, slots=True)
class Member:
    id: str
    client_id: str
    instance: str | None
    session: float
    client: Client
    seen: float
    owned: frozenset[int] = frozenset()
    joined: bool = False


@dataclass(slots=True)
class Group:
    """``pending``: offsets of transactions that are not decided, by producer; of each slot, and of the committed ones,
    the metadata."""

    name: str
    partitions: int = 0
    generation: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    preparing: bool = False
    pending: dict[int, dict[int, str]] = field(default_factory=dict)
    committed: dict[int, str] = field(default_factory=dict)
    round: int = 0


class Groups:
    """Of the whole cluster."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.groups: dict[str, Group] = {}
        self._named = 0
        self.rebalances = 0
        self.thrown_out = 0
        # Until then there is no coordinator, which would throw somebody out.
        self.away_until = 0.0

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group(name))

    # -- members -----------------------------------------------------------------------------------------------

    def join(
        self, name: str, client_id: str, instance: str | None, session: float, partitions: int, client: Client
    ) -> Member:
        """A new member; one with an instance's name takes the place of the former, who is no member any more."""
        group = self.group(name)
        group.partitions = partitions
        self._named += 1
        member = Member(f"{client_id}-{self._named}", client_id, instance, session, client, self._scheduler.now)
        for other in list(group.members.values()):
            if instance is not None and other.instance == instance:
                del group.members[other.id]
        group.members[member.id] = member
        member.joined = True
        self._watch(group, member)
        self._rebalance(group, member)
        return member

    def leave(self, name: str, member_id: str) -> None:
        group = self.group(name)
        if group.members.pop(member_id, None) is not None:
            self._rebalance(group)

    def heartbeat(self, name: str, member_id: str) -> int | None:
        group = self.group(name)
        member = group.members.get(member_id)
        if member is None:
            return int(KafkaError.UNKNOWN_MEMBER_ID)
        member.seen = self._scheduler.now
        return int(KafkaError.REBALANCE_IN_PROGRESS) if group.preparing and not member.joined else None

    def rejoin(self, name: str, member_id: str, owned: frozenset[int]) -> int | None:
        """JoinGroup of a member: what it has at present."""
        group = self.group(name)
        member = group.members.get(member_id)
        if member is None:
            return int(KafkaError.UNKNOWN_MEMBER_ID)
        changed = owned != member.owned
        member.seen, member.owned = self._scheduler.now, owned
        if not group.preparing:
            if not changed:
                return None
            self._rebalance(group, member)
            return None
        member.joined = True
        self._complete_if_all(group)
        return None

    def throw_out(self, name: str, member_id: str) -> None:
        group = self.group(name)
        if group.members.pop(member_id, None) is not None:
            self.thrown_out += 1
            self._rebalance(group)

    def resize(self, topic: str, partitions: int) -> None:
        """A topic has so many partitions now: of one that is deleted none, and nothing is committed of it any more."""
        for group in self.groups.values():
            members = list(group.members.values())
            if any(member.client.topic == topic for member in members):
                group.partitions = partitions
                group.committed = {slot: each for slot, each in group.committed.items() if slot < partitions}
                self._rebalance(group)

    # -- offsets in transactions -------------------------------------------------------------------------------

    def offsets(self, name: str, member_id: str, generation: int, producer: int, slots: dict[int, str]) -> int | None:
        """TxnOffsetCommit. An empty member id is that of a client that knows no generations."""
        group = self.group(name)
        if member_id or generation >= 0:
            if member_id not in group.members:
                return int(KafkaError.UNKNOWN_MEMBER_ID)
            if generation != group.generation:
                return int(KafkaError.ILLEGAL_GENERATION)
        group.pending.setdefault(producer, {}).update(slots)
        return None

    def settle(self, name: str, producer: int, commit: bool) -> None:
        decided = self.group(name).pending.pop(producer, {})
        if commit:
            self.group(name).committed.update(decided)

    def unstable(self, name: str, slots: set[int]) -> bool:
        return any(pending.keys() & slots for pending in self.group(name).pending.values())

    def away(self, until: float) -> None:
        """Nobody is thrown out for the coordinator's own absence."""
        self.away_until = max(self.away_until, until)
        for group in self.groups.values():
            for member in group.members.values():
                member.seen = max(member.seen, until)

    # -- inside ------------------------------------------------------------------------------------------------

    def _watch(self, group: Group, member: Member) -> None:
        def look() -> None:
            if group.members.get(member.id) is not member:
                return
            if self._scheduler.now < self.away_until:
                self._scheduler.later(self.away_until - self._scheduler.now + 0.001, look)
                return
            silent = self._scheduler.now - member.seen
            if silent >= member.session:
                self.throw_out(group.name, member.id)
            else:
                self._scheduler.later(member.session - silent + 0.001, look)

        self._scheduler.later(member.session, look)

    def _rebalance(self, group: Group, joined: Member | None = None) -> None:
        """All members join anew; the next generation begins when they have."""
        if not group.preparing:
            group.preparing = True
            group.round += 1
            self.rebalances += 1
            for member in group.members.values():
                member.joined = member is joined
        for member in list(group.members.values()):
            if not member.joined:
                member.client.told_to_join()
        self._complete_if_all(group)

    def _complete_if_all(self, group: Group) -> None:
        if not group.preparing or not all(member.joined for member in group.members.values()):
            return
        group.preparing = False
        group.generation += 1
        for member, slots in self._shares(group).items():
            member.client.assigned(group.generation, slots)

    def _shares(self, group: Group) -> dict[Member, frozenset[int]]:
        """Cooperative and sticky: everybody keeps what he has, up to his share; what another has is not given yet."""
        members = sorted(group.members.values(), key=lambda member: member.id)
        if not members:
            return {}
        fair, more = divmod(group.partitions, len(members))
        by_load = sorted(members, key=lambda member: (-len(member.owned), member.id))
        limit = {member: fair + (at < more) for at, member in enumerate(by_load)}
        kept = {member: set(sorted(member.owned)[: limit[member]]) for member in members}
        taken = {slot for member in members for slot in member.owned}
        for slot in range(group.partitions):
            if slot not in taken:
                least = min(members, key=lambda member: (len(kept[member]) - limit[member], member.id))
                kept[least].add(slot)
        return {member: frozenset(slots) for member, slots in kept.items()}
