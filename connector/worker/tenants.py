"""The connectors of one `run`, each with a fate of its own: what ails one neither delays nor ends another.

In: the configuration of each. Out: whether its workers may be started, and what has become of it. With a single
connector its end is the end of `run`, which tells an orchestrator; beside others it is FAILED, and tried again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from connector.config import Configuration
from connector.errors import Problem
from connector.pauses import doubled
from connector.worker.ended_workers import Ends
from connector.worker.holding import Target
from connector.worker.slots import Noted

log = logging.getLogger(__name__)

# Until what was given up is tried again: as soon as a table that has failed is, and twice as long each time.
FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 60.0, 900.0

#: What servers object to, and what the offsets topic says if there are marks. Sets ``waiting_for`` of what it is given.
Checks = Callable[[Configuration, threading.Event, "Preparation"], tuple[Sequence[Problem], Noted | None]]


class Preparation:
    """The checks in front of a connector's workers, in a thread: servers that are away are waited for in it."""

    def __init__(self, configuration: Configuration, stop: threading.Event, checks: Checks) -> None:
        self.waiting_for: str | None = "its servers are being checked"
        self.noted: Noted | None = None
        self.failure: str | None = None
        self.done = threading.Event()
        self._work = lambda: self._check(configuration, stop, checks)

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True, name="preparation").start()

    def _check(self, configuration: Configuration, stop: threading.Event, checks: Checks) -> None:
        try:
            problems, self.noted = checks(configuration, stop, self)
            self.failure = "; ".join(map(str, problems)) or None
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self.done.set()


@dataclass(slots=True)
class Tenant:
    """One connector of the process."""

    name: str
    preparation: Preparation | None = None
    #: Of its workers, as long as none of them has committed since.
    ends: Ends = field(default_factory=Ends)
    restarts: int = 0
    #: Why it is not run any more.
    over: str | None = None
    #: Why it still runs by another definition than its newest one.
    unheeded: str | None = None
    #: Which other processes run it by another configuration.
    unlike: str | None = None
    #: Which server refuses the login of its workers, and what it says.
    refused: str | None = None
    #: How often workers were started anew since what they log in with had changed.
    renewed_logins: int = 0
    #: Which other process hears nothing of what is asked.
    unheard: str | None = None
    target: Target = Target.RUNNING
    #: How often it was given up, without a commit since; when it is looked at again.
    _looks: int = 0
    _look_due: float = 0.0
    _prepare: Callable[[], Preparation] | None = None
    #: It was not to run when it came, so nobody has looked at its servers yet.
    _unprepared: bool = False

    def prepare(self, prepare: Callable[[], Preparation]) -> None:
        """``prepare`` makes what stands in front of its workers: as soon as it is to run, and when it is begun anew."""
        self._prepare, self._unprepared = prepare, self.target is not Target.RUNNING
        if not self._unprepared:
            self.preparation = prepare()
            self.preparation.start()

    def begin_anew(self) -> None:
        """One that was given up is tried again, from its checks on."""
        self.forget_ends()
        self.over = None
        if self._prepare is not None:
            self.prepare(self._prepare)

    def look_again(self) -> bool:
        """Whether it was given up and is tried again now. What it failed of stands until its checks find nothing."""
        due = self.over is not None and self.preparation is None and time.monotonic() >= self._look_due
        if not due or self.target is not Target.RUNNING:
            return False
        log.info("connector %s: looked at again", self.name)
        if self._prepare is None:
            self.over = None
        else:
            self.prepare(self._prepare)
        return True

    def forget_ends(self) -> None:
        """Something got through: the next failure is the first one."""
        self.ends = Ends()
        self._looks = 0

    def may_start(self) -> bool:
        """Whether its workers may be started now."""
        if self.target is not Target.RUNNING:
            return False
        if self._unprepared and self._prepare is not None:
            self.prepare(self._prepare)
        if self.preparation is not None and self.preparation.done.is_set():
            failure, self.preparation = self.preparation.failure, None
            if failure is not None:
                self._give_up(failure)
            else:
                self.over = None
        return self.preparation is None and self.over is None

    def give_up(self, why: str) -> None:
        if self.over is None:
            self._give_up(why)

    def _give_up(self, why: str) -> None:
        if self.over != why:
            log.error("connector %s: FAILED: %s", self.name, why)
        self.over = why
        self._looks += 1
        self._look_due = time.monotonic() + doubled(FIRST_LOOK_SECONDS, self._looks, LONGEST_LOOK_SECONDS)

    @property
    def remark(self) -> str | None:
        """What is to be said of it though its workers run."""
        return self.unheeded or self.unlike

    def reason(self) -> str | None:
        """Why none of its workers runs, whatever they say."""
        if self.over is not None:
            return f"connector {self.name} has failed: {self.over}"
        if self.preparation is not None and self.preparation.waiting_for:
            return f"connector {self.name}: {self.preparation.waiting_for}"
        return None
