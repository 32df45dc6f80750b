"""What is being tried again, how often and why: per group of streams, for `status` and metrics.

In: failures and successes of reads. Out: how long to wait (doubling with jitter), when to give up, and when to look
whether somebody has mended what was given up; `Background` is told of tables some of whose streams are not read.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connector.errors import AccessDenied, CdcError, FatalSourceError, ReplicasAway, TableMissing
from connector.pauses import doubled
from connector.source.background import SOURCE, Background, Purpose
from connector.source.failures import NotReached, ReadTimedOut
from connector.source.settings import ReadingSettings
from connector.table_name import TableName
from connector.topology import GroupState, Read, TableState

# A table that is gone may be a schema change that this coordinator has not seen yet; one that stays gone is gone.
MISSING_TABLE_ATTEMPTS = 30
DENIED_ATTEMPTS = 5
FATAL_ATTEMPTS = 3
# A FAILED group waits for somebody to mend a topic, a registry, a table. Each attempt may cost all of them a
# transaction.
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 60.0, 900.0

# Whose node is back, the first answer tells; of another node that is still away it is not asked more often than this.
BACK_SECONDS = 2.0

# A read that times out is over with the next one, which is narrower: trouble is a state when it lasts for longer.
TROUBLE_SECONDS = 30.0

READING = Purpose(
    "reading",
    "some streams are not read",
    "their changes wait in the log until its TTL",
    grace=TROUBLE_SECONDS,
    behind=SOURCE,
)


@dataclass(slots=True)
class Retrying:
    """One group's trouble. ``told``: reading it failed; without, it only pauses."""

    table: TableName
    error: CdcError
    not_before: float
    attempts: int = 0
    told: bool = False


class Retries:
    """Of one worker. Times are the caller's monotonic seconds."""

    def __init__(self, settings: ReadingSettings, background: Background) -> None:
        self._settings = settings
        self._random = random.Random()
        self._background = background
        background.expect(READING)
        self._told: Counter[TableName] = Counter()
        # Of what kinds of trouble one is over.
        self._over = set[type[CdcError]]()
        self._back_due = float("-inf")
        self.groups: dict[GroupState, Retrying] = {}
        self.total = 0

    def failed(self, read: Read, error: CdcError, now: float) -> Retrying:
        """Note a failure, or what it has to pause for; ``not_before`` says when the next attempt may start."""
        self.total += 1
        known = self.groups.get(read.state)
        if known is None:
            known = self.groups[read.state] = Retrying(read.table, error, now)
        # Another kind of error is another trouble: what counts is how often the same one came in a row.
        known.attempts = known.attempts + 1 if type(known.error) is type(error) else 1
        known.error = error
        known.not_before = now + self._pause(known.attempts)
        return known

    def go_on(self, now: float) -> frozenset[GroupState]:
        """Groups that only pause, and need not any more; if they have to again, for longer."""
        return self._at_once(now, lambda retrying: not retrying.told)

    def back(self, now: float) -> frozenset[GroupState]:
        """Groups that need not wait any longer, as one was answered again whose nodes were away as theirs are."""
        if not self._over or now < self._back_due:
            return frozenset()
        kinds, self._over, self._back_due = self._over, set(), now + BACK_SECONDS
        return self._at_once(now, lambda retrying: type(retrying.error) in kinds)

    def _at_once(self, now: float, which: Callable[[Retrying], bool]) -> frozenset[GroupState]:
        chosen = {group: retrying for group, retrying in self.groups.items() if which(retrying)}
        for retrying in chosen.values():
            retrying.not_before = min(now, retrying.not_before)
        return frozenset(chosen)

    def tell(self, retrying: Retrying) -> None:
        """It is read again and again in vain."""
        if not retrying.told:
            retrying.told = True
            self._told[retrying.table] += 1
        self._background.task(READING, retrying.table).failed(retrying.error)

    def over(self, group: GroupState, *, worked: bool = True) -> None:
        """It was read, or (not ``worked``) it is not ours to read any more."""
        known = self.groups.pop(group, None)
        if known is None:
            return
        if worked and _is_away(known.error):
            self._over.add(type(known.error))
        if not known.told:
            return
        self._told[known.table] -= 1
        if not self._told[known.table]:
            del self._told[known.table]
            task = self._background.task(READING, known.table)
            if worked:
                task.worked()
            else:
                task.dismiss()

    def forget_settled(self, tables: Mapping[TableName, TableState]) -> None:
        """Groups that nobody will read: a sweep saw that they are silent, or they have ended, or they are not ours."""
        for group, retrying in list(self.groups.items()):
            plan = tables.get(retrying.table)
            if plan is None:
                self.over(group, worked=False)
            elif group.silence is not None or (group.drained and group.looked):
                self.over(group)
            elif plan.failure is not None or group.slot not in plan.active:
                self.over(group, worked=False)

    def time_out(self, table: TableName) -> bool:
        """Whether reads of some of its groups do, at present."""
        return any(each.table == table and isinstance(each.error, ReadTimedOut) for each in self.groups.values())

    def hopeless(self, retrying: Retrying) -> bool:
        """Trying again has stopped making sense."""
        error, attempts = retrying.error, retrying.attempts
        if isinstance(error, TableMissing):
            return attempts >= MISSING_TABLE_ATTEMPTS
        if isinstance(error, AccessDenied):
            return attempts >= DENIED_ATTEMPTS
        return isinstance(error, FatalSourceError) and attempts >= FATAL_ATTEMPTS

    def _pause(self, attempts: int) -> float:
        pause = doubled(self._settings.retry_base_ms, attempts, self._settings.retry_max_ms) / 1000
        return pause * (1 - self._random.random() * self._settings.retry_jitter_percent / 100)


def _is_away(error: CdcError) -> bool:
    """Not who takes too long: he has more to do the more he is asked."""
    return isinstance(error, ReplicasAway | NotReached) and not isinstance(error, ReadTimedOut)


class GivenUp:
    """FAILED groups of one worker, by the reads that failed, and when to try each again."""

    def __init__(self) -> None:
        self._groups: dict[GroupState, tuple[float, float, Read]] = {}

    def failed(self, read: Read, now: float) -> None:
        """For the first time, or again: told before the planner is."""
        known = None if read.state.failure is None else self._groups.get(read.state)
        pause = FIRST_LOOK_SECONDS if known is None else min(LONGEST_LOOK_SECONDS, 2 * known[1])
        self._groups[read.state] = (now + pause, pause, read)

    def due(self, now: float) -> list[Read]:
        """Each is told once, until it fails again. All of a table together: they mostly have the same cause, which the
        first of them finds."""
        tables = {read.table for at, _, read in self._groups.values() if at <= now}
        due = [(state, pause, read) for state, (_, pause, read) in self._groups.items() if read.table in tables]
        for state, pause, read in due:
            self._groups[state] = (float("inf"), pause, read)
        return [read for _, _, read in due]

    def hurry(self, now: float) -> None:
        """Somebody has asked for all to be tried again; what is being tried is left to that."""
        for state, (at, pause, read) in self._groups.items():
            self._groups[state] = (min(at, now) if at != float("inf") else at, pause, read)

    def forget(self, state: GroupState) -> None:
        """It is read again, or not ours any more."""
        self._groups.pop(state, None)
