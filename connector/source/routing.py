"""Which node is asked for a stream: one that holds it, so that the answer is not fetched from another node first.

In: a policy that says which nodes may be asked, statements that name their stream, nodes to be avoided, as those that
say nothing are. Out: the same nodes, the holders first, who is avoided last; a holder that is down is not among them,
and any other node will do.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cassandra.policies import WrapperPolicy

from connector.pauses import doubled
from connector.source.failures import bracketed

log = logging.getLogger(__name__)

# How long a node is avoided that says nothing, if there are others, and at the most.
AVOIDED_SECONDS, LONGEST_SECONDS = 30.0, 300.0


def aim(statement: Any, token: int, keyspace: str, table: str) -> Any:
    """Let the statement go to those who hold that token of the table."""
    # The driver's own routing key would be hashed; a stream id *is* its token.
    statement.stream_token = token
    statement.keyspace, statement.table = keyspace, table
    return statement


def release(statement: Any) -> None:
    """Let the statement go to anybody again."""
    statement.stream_token = None


class HoldersFirst(WrapperPolicy):  # type: ignore[misc]
    """Around the policy that decides whom to ask at all."""

    # What went wrong with finding holders, until somebody asks for it: it costs a detour, never an answer.
    trouble: Exception | None = None
    # Until when. Replaced as a whole: plans are made in any thread.
    _avoided: Mapping[Any, float] = MappingProxyType({})
    # How often in a row each was avoided that said nothing.
    _silences: Mapping[Any, int] = MappingProxyType({})

    def avoid(self, host: Any, seconds: float) -> None:
        now = time.monotonic()
        still = {each: until for each, until in self._avoided.items() if until > now}
        self._avoided = {**still, host: now + seconds}

    def heard(self, answered: Any, silent: Collection[Any]) -> None:
        """A node has answered, or none (None); those that were asked before it and said nothing are avoided, for longer
        each time."""
        now, silences = time.monotonic(), self._silences
        for host in silent:
            # Many questions that were put to it meet the same silence.
            if self._avoided.get(host, now) <= now:
                silences = {**silences, host: silences.get(host, 0) + 1}
                pause = doubled(AVOIDED_SECONDS, silences[host], LONGEST_SECONDS)
                self.avoid(host, pause)
                node = bracketed(str(host.endpoint))
                log.warning("%s takes queries and does not answer: for %.0f s it is asked last", node, pause)
        # What comes late, while it is avoided, does not make it one that answers in time.
        if answered in silences and self._avoided.get(answered, now) <= now:
            silences = {host: count for host, count in silences.items() if host != answered}
        self._silences = silences

    def populate(self, cluster: Any, hosts: Collection[Any]) -> None:
        self._metadata = cluster.metadata
        super().populate(cluster, hosts)

    def make_query_plan(self, working_keyspace: str | None = None, query: Any = None) -> Iterator[Any]:
        plan = list(self._child_policy.make_query_plan(working_keyspace, query))
        token = getattr(query, "stream_token", None)
        if token is not None and len(plan) > 1:
            try:
                holders = self._holders(plan, query.keyspace, query.table, token)
            except Exception as error:
                # The driver's picture of ring and tablets changes while it is looked at.
                self.trouble = error
            else:
                plan.sort(key=lambda host: host not in holders)
        if self._avoided:
            now, avoided = time.monotonic(), self._avoided
            plan.sort(key=lambda host: avoided.get(host, now) > now)
        return iter(plan)

    def _holders(self, plan: Sequence[Any], keyspace: str, table: str, token: int) -> Collection[Any]:
        tokens = self._metadata.token_map
        if tokens is None or not tokens.ring:
            return ()
        at = tokens.token_class(token)
        # Nodes tell where a tablet lives when they are asked for one that they do not hold.
        tablet = self._metadata._tablets.get_tablet_for_key(keyspace, table, at)
        if tablet is not None:
            ids = {host_id for host_id, _ in tablet.replicas}
            return [host for host in plan if host.host_id in ids]
        # Else the next node of the ring holds it, or the next of our datacenter does. It alone, so that the pages of a
        # read come from one node; vnodes are many enough to spread the streams evenly.
        start = bisect_left(tokens.ring, at)
        for each in (*tokens.ring[start:], *tokens.ring[:start]):
            host = tokens.token_to_host_owner[each]
            if host in plan:
                return (host,)
        return ()
