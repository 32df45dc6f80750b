"""Background tasks: everything besides reading and delivering, and what a failure blocks.

In: each task's attempts, failures and successes, from the thread that owns them. Out: one line in the log at the first
failure, one in each interval while it lasts, one at the recovery; and `Failing` for `status`, `/health` and metrics.
Nothing here retries: the owner of a task does, after `Task.pause`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from connector.errors import CdcError
from connector.pauses import doubled

log = logging.getLogger(__name__)

# Often enough that whoever looks at the last page of a log sees it, rarely enough that the page holds other lines too.
TELL_SECONDS = 30.0

# A node that restarts or an answer that is lost is over within this time: such a failure is told, but it is no state.
GRACE_SECONDS = 3.0

# A question that is not answered for so long counts as failed before the driver gives up on it (30 s by default).
OVERDUE_SECONDS = 10.0

# An owner that was busy elsewhere for so long (with its consumer, in a commit) has answers lying about: no task is
# blamed for that time.
ABSENT_SECONDS = 2.0

# Pauses between attempts double from the first to the longest: nothing that is away is asked in a hot loop, and what
# comes back is noticed soon.
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0

# The kind of the task that asks ScyllaDB for a sign of life: what else is asked of it fails with that.
SOURCE: Final = "source"


@dataclass(frozen=True, slots=True)
class Failing:
    """A task that does not work, now. ``about``: the table or server that it is about, or nothing. ``since`` is in
    seconds since 1970: when it last worked, as far as that is known; ``lasting``: seconds since its first failure.
    ``holds``: delivery waits for it. ``partial``:
    others do the same work, and may well succeed."""

    kind: str
    about: str
    since: float
    seconds: float
    lasting: float
    attempts: int
    error: str
    broken: str
    waits: str
    holds: bool
    partial: bool

    def __str__(self) -> str:
        about = f"{self.about}: " if self.about else ""
        return f"{about}{self.broken} since {instant(self.since)}: {self.error}; {self.waits}"


def instant(seconds: float) -> str:
    """``2026-11-22T12:03:05+00:00``: a log is read in other time zones than it was written in."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def explained(error: BaseException | str) -> str:
    """An error for people; of one that nobody foresaw, its type as well."""
    if isinstance(error, str | CdcError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a task is for: ``broken`` says what does not happen while it fails, ``waits`` what may be waiting for it.

    ``holds``: delivery waits for it. ``partial``: others do the same work. ``steady``: it is done all the time, so it
    fails since it last worked; others fail since their first failure. ``grace``: so many seconds of failure are told,
    but no state. ``behind``: the kind of a task that says it for all while it fails, of a hundred tables in one line;
    this one is shown then, and not logged.
    """

    kind: str
    broken: str
    waits: str
    holds: bool = True
    partial: bool = False
    steady: bool = False
    grace: float = GRACE_SECONDS
    behind: str = ""


class Task:
    """One thing that is done again and again, about one table or server or about none. Made by `Background.task`."""

    def __init__(self, owner: Background, purpose: Purpose, about: str) -> None:
        self._owner = owner
        self.purpose = purpose
        self.about = about
        # Where the same work is of more or less weight at times.
        self.holds = purpose.holds
        self.attempts = 0
        self.error: str | None = None
        # By the monotonic clock; only `_since_wall`, which is shown, is by the other.
        self._asked: float | None = None
        #: When an attempt failed last.
        self.tried = float("-inf")
        self._whom = ""
        self._worked: float | None = None
        self._began = self._since = self._since_wall = 0.0
        self._told_at: float | None = None
        self._told = False
        self._mended = float("-inf")

    @property
    def name(self) -> str:
        return f"{self.purpose.kind} of {self.about}" if self.about else self.purpose.kind

    def asked(self, whom: str) -> None:
        """An attempt is under way; it counts as failed where no answer comes for `OVERDUE_SECONDS`."""
        self._whom = whom
        self._asked = self._owner.monotonic()
        self._owner.asking.add(self)

    def failed(self, error: BaseException | str) -> None:
        """An attempt failed."""
        self.attempts += 1
        self.tried = self._owner.monotonic()
        self._fail(explained(error))
        if isinstance(error, BaseException) and not isinstance(error, CdcError) and self.attempts == 1:
            log.warning("%s: unexpected error", self.name, exc_info=error)

    def worked(self) -> None:
        """An attempt succeeded."""
        # An answer vouches for the time of its question.
        self._worked = self._owner.monotonic() if self._asked is None else self._asked
        if self.error is not None:
            self._mended = self._owner.monotonic()
            if self._told:
                log.info("%s: works again after %.0f s", self.name, self._mended - self._since)
        self.dismiss()

    def is_now(self, error: str | None) -> None:
        """What somebody who tries again by himself says of it, asked over and over."""
        if error is None:
            if self.error is not None:
                self.worked()
        elif error != self.error:
            self.failed(error)

    def dismiss(self) -> None:
        """Nobody needs it any more, whether it works or not."""
        self.answered()
        self.error = None
        self.attempts = 0
        self._told = False
        self._owner.broken.pop(self, None)

    def pause(self, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> float:
        """How long to wait before the next attempt, after `failed`."""
        return doubled(first, self.attempts, longest)

    def failing(self, lasting: bool = False) -> Failing | None:
        """What is to be said of it. ``lasting``: only if it has been failing for longer than its grace."""
        now, purpose = self._owner.monotonic(), self.purpose
        if self.error is None or (lasting and now - self._began < purpose.grace):
            return None
        return Failing(
            kind=purpose.kind,
            about=self.about,
            since=self._since_wall,
            seconds=now - self._since,
            lasting=now - self._began,
            attempts=self.attempts,
            error=self.error,
            broken=purpose.broken,
            waits=purpose.waits,
            holds=self.holds,
            partial=purpose.partial,
        )

    def look(self, now: float) -> None:
        """What time itself has to say: an answer that is overdue, a failure that is to be told again."""
        if self._asked is not None and now - self._asked >= OVERDUE_SECONDS and self.error is None:
            asked = self._asked
            self._fail(f"no answer of {self._whom} for {OVERDUE_SECONDS:.0f} s")
            self._began = self._asked = asked
        due = self._told_at is None or now - self._told_at >= TELL_SECONDS
        if self.error is not None and due and not self._said_for_all():
            self._told_at = now
            self._told = True
            attempts = f" ({self.attempts} attempts)" if self.attempts > 1 else ""
            log.warning("%s%s", self.failing(), attempts)

    def shift(self, seconds: float, now: float) -> None:
        """Nobody could take answers in, nor ask again, for so long. What was asked meanwhile was asked by ``now``."""
        if self._asked is not None:
            self._asked = min(now, self._asked + seconds)
        self._began = min(now, self._began + seconds)

    def _said_for_all(self) -> bool:
        """Somebody else says why; or did, and nothing has failed since that is over."""
        cause = self._owner.known(self.purpose.behind)
        return cause is not None and (cause.error is not None or max(self.tried, self._began) <= cause._mended)

    def _fail(self, error: str) -> None:
        now = self._owner.monotonic()
        if self.error is None:
            self._began = now
            self._since = now if self._asked is None else self._asked
            if self.purpose.steady and self._worked is not None:
                self._since = self._worked
            self._since_wall = self._owner.wall() - (now - self._since)
            self._owner.broken[self] = None
        self.answered()
        self.error = error
        log.debug("%s: attempt %d: %s", self.name, self.attempts, error)
        self.look(now)

    def answered(self) -> None:
        """An answer came that settles nothing yet."""
        self._asked = None
        self._owner.asking.discard(self)


class Background:
    """All tasks of one process. Owned by one thread, which calls `tick`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self.monotonic = monotonic
        self.wall = wall
        self._ticked = monotonic()
        self._kinds: dict[str, None] = {}
        self._tasks: dict[tuple[str, str], Task] = {}
        self.broken: dict[Task, None] = {}
        self.asking: set[Task] = set()

    def task(self, purpose: Purpose, about: object = "") -> Task:
        """The task of that purpose and subject: made at the first call, the same at later ones."""
        key = (purpose.kind, str(about))
        found = self._tasks.get(key)
        if found is None:
            self.expect(purpose)
            found = self._tasks[key] = Task(self, purpose, str(about))
        return found

    def known(self, kind: str) -> Task | None:
        """The task of that kind that is about nothing in particular, if there is one."""
        return self._tasks.get((kind, ""))

    def dismiss(self, about: object) -> None:
        """Nothing of that subject is done any more."""
        for task in [task for (_, subject), task in self._tasks.items() if subject == str(about)]:
            task.dismiss()

    def expect(self, *purposes: Purpose) -> None:
        """Kinds of which there may be a task one day: metrics have them from the beginning."""
        self._kinds |= {purpose.kind: None for purpose in purposes}

    def tick(self) -> None:
        """Tell what is to be told now; cheap while everything works."""
        now = self.monotonic()
        before, self._ticked = self._ticked, now
        for task in {*self.broken, *self.asking}:
            # Not those that it was busy with, or came to meanwhile: they fail for as long as they do.
            if now - before > ABSENT_SECONDS and task.tried < before:
                task.shift(now - before, now)
            task.look(now)

    def failing(self, lasting: bool = False) -> list[Failing]:
        """What does not work, the longest first. ``lasting``: without what may be over in a moment."""
        found = [failing for task in list(self.broken) if (failing := task.failing(lasting)) is not None]
        return sorted(found, key=lambda failing: failing.since)

    def kinds(self) -> dict[str, float]:
        """Every kind of task, with how many seconds it has been failing: that of the worst where there are several."""
        seconds = dict.fromkeys((kind.replace(" ", "_") for kind in self._kinds), 0.0)
        for failing in self.failing():
            kind = failing.kind.replace(" ", "_")
            seconds[kind] = max(seconds[kind], failing.seconds)
        return seconds
