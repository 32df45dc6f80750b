"""Which node is asked for a stream: one that holds it, so that the answer is not fetched from another node first.

In: a policy that says which nodes may be asked, statements that name their stream, nodes to be avoided, as those
that say nothing or are slow. Out: the same nodes, the holders first, who is avoided last; a holder that is down is not
among them, and any other node will do.
"""

from __future__ import annotations

import logging
import sys
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cassandra.policies import WrapperPolicy

from connector.pauses import doubled
from connector.source.failures import bracketed

log = logging.getLogger(__name__)

# How long a node is avoided that says nothing, or is slow, if there are others, and at the most.
AVOIDED_SECONDS, LONGEST_SECONDS = 30.0, 300.0

# Whether that is over shows when it is asked again; who is not asked counts as well after so long.
TRIAL_SECONDS = 15.0

# A node is slow that takes so long, and so many times as long as the fastest. Its answers hold places for queries that
# streams of other nodes wait for. Of how many answers that is known, and how many it is the mean of at most.
SLOW_SECONDS, SLOW_FACTOR = 1.0, 10.0
LEAST_ANSWERS, MOST_ANSWERS = 8, 20

# Who has answered nothing for so long, as one that is gone, is no measure for others: they may have
# what was his to do as well.
MEASURE_SECONDS = 60.0


def aim(statement: Any, token: int, keyspace: str, table: str) -> Any:
    """Let the statement go to those who hold that token of the table."""
    # The driver's own routing key would be hashed; a stream id *is* its token.
    statement.stream_token = token
    statement.keyspace, statement.table = keyspace, table
    return statement


def release(statement: Any) -> None:
    """Let the statement go to anybody again."""
    statement.stream_token = None


def is_read_of_streams(statement: Any) -> bool:
    """It names the stream that it reads, and not rows of many partitions."""
    return getattr(statement, "stream_token", None) is not None and not getattr(statement, "takes_time", False)


class HoldersFirst(WrapperPolicy):  # type: ignore[misc]
    """Around the policy that decides whom to ask at all."""

    # What went wrong with finding holders, until somebody asks for it: it costs a detour, never an answer.
    trouble: Exception | None = None
    # Until when. Replaced as a whole: plans are made in any thread.
    _avoided: Mapping[Any, float] = MappingProxyType({})
    # How often in a row each was avoided that said nothing, or was slow, and what it did the last time.
    _troubles: Mapping[Any, tuple[int, str]] = MappingProxyType({})

    def __init__(self, child_policy: Any) -> None:
        super().__init__(child_policy)
        # How many may be asked besides the first one, of those that are up; many, until that is known.
        self.others = sys.maxsize
        # Of each node how many answers were counted, what they took, and when the last one came.
        self._pace: dict[Any, tuple[int, float, float]] = {}

    def avoid(self, host: Any, seconds: float) -> None:
        now = time.monotonic()
        still = {each: until for each, until in self._avoided.items() if until + TRIAL_SECONDS > now}
        self._avoided = {**still, host: now + seconds}

    def heard(self, answered: Any, silent: Collection[Any], seconds: float | None = None) -> None:
        """A node has answered, or none (None), within so many seconds if that says how fast it is. Those that were
        asked before it and said nothing are avoided, and so is who is slow: for longer each time."""
        for host in silent:
            self._trouble(host, "takes queries and does not answer")
        if answered is None or seconds is None or self._is_avoided(answered):
            # What comes late, while it is avoided, does not make it one that answers in time.
            return
        now = time.monotonic()
        count, mean, _ = self._pace.get(answered, (0, 0.0, now))
        count = min(count + 1, MOST_ANSWERS)
        mean += (seconds - mean) / count
        self._pace[answered] = count, mean, now
        if count < LEAST_ANSWERS:
            return
        # Itself in any case: another thread may just have dropped what is known of it.
        pace = [(count, mean, now), *self._pace.values()]
        fastest = min(each for known, each, at in pace if known >= LEAST_ANSWERS and now - at < MEASURE_SECONDS)
        if mean > SLOW_SECONDS and mean > SLOW_FACTOR * fastest:
            self._trouble(answered, f"takes {mean:.1f} s to answer, another node {fastest:.2f} s")
        elif answered in self._troubles:
            self._troubles = {host: trouble for host, trouble in self._troubles.items() if host != answered}

    def _trouble(self, host: Any, what: str) -> None:
        # Many questions that were put to it meet the same trouble.
        if self._is_avoided(host):
            return
        times = self._troubles.get(host, (0, ""))[0] + 1
        self._troubles = {**self._troubles, host: (times, what)}
        self._pace.pop(host, None)
        pause = doubled(AVOIDED_SECONDS, times, LONGEST_SECONDS)
        self.avoid(host, pause)
        then = f"for {pause:.0f} s it is asked last" if self.others else "there is no other node to ask"
        log.info("%s %s: %s", bracketed(str(host.endpoint)), what, then)

    @property
    def troubles(self) -> dict[str, str]:
        """Nodes that do not answer, or slowly, and which of the two it is."""
        now, avoided = time.monotonic(), self._avoided
        return {
            str(host.endpoint): what
            for host, (_, what) in self._troubles.items()
            if now < avoided.get(host, -TRIAL_SECONDS) + TRIAL_SECONDS
        }

    def _is_avoided(self, host: Any) -> bool:
        now = time.monotonic()
        return self._avoided.get(host, now) > now

    def populate(self, cluster: Any, hosts: Collection[Any]) -> None:
        self._metadata = cluster.metadata
        super().populate(cluster, hosts)

    def make_query_plan(self, working_keyspace: str | None = None, query: Any = None) -> Iterator[Any]:
        plan = list(self._child_policy.make_query_plan(working_keyspace, query))
        self.others = len(plan) - 1
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
