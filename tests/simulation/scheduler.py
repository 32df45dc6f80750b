"""Virtual time and one thread for everybody: simulated processes whose tasks take turns in an order drawn from a seed.

In: tasks (greenlets) of processes, and events of servers. Out: time that passes at once, and the same run for the same
seed. A process can be killed or paused whenever one of its tasks waits: nothing of it is resumed, or not until then.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

EPOCH = 1_700_000_000.0
"""Where the clocks of servers stand when a simulation begins, in seconds since 1970."""


class Process:
    """One simulated process. ``skew``: seconds by which its own clock is off."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.skew = 0.0
        # In the order of their start: a set would be gone through in the order of addresses, another one each time.
        self.tasks: dict[Task, None] = {}


class Task:
    """One thread of a process. ``wake`` may come before its time is over."""

    def __init__(self, process: Process, run: Callable[[], Any]) -> None:
        self.process = process
        self.turn = 0
        self.woken = False
        self.greenlet = greenlet(run)


class Scheduler:
    """Owned by the test; `run` is the loop."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self._heap: list[tuple[float, float, int, Callable[[], None]]] = []
        self._count = 0
        self._hub = getcurrent()
        self._tasks: dict[greenlet, Task] = {}
        # Called whenever a task is about to wait: where kills and pauses come from.
        self.disturb: Callable[[Process], None] = lambda process: None
        self.errors: list[BaseException] = []
        # The test itself, where it calls the product without a process of its own.
        self.outside = Process("the test")

    # -- what servers and tests use ----------------------------------------------------------------------------

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call it in so many seconds; events of one moment come in a random order."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + seconds, self.random.random(), self._count, call))

    def run(self, until: float, over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until then, or until it is ``over``."""
        self._hub = getcurrent()
        while self._heap and self._heap[0][0] <= until and not over():
            at, _, _, call = heapq.heappop(self._heap)
            self.now = max(self.now, at)
            call()
            if self.errors:
                raise self.errors[0]
        if not over():
            self.now = max(self.now, until)

    def close(self) -> None:
        """End every process: a greenlet that is left to the garbage collector runs its `finally` anywhere."""
        for task in list(self._tasks.values()):
            self.kill(task.process)

    # -- processes ---------------------------------------------------------------------------------------------

    def spawn(self, process: Process, call: Callable[[], Any]) -> Task:
        """A new thread of the process, which begins at the next opportunity."""

        def run() -> None:
            try:
                call()
            except GreenletExit:
                pass
            except BaseException as error:
                if process.alive:
                    self.errors.append(error)
            finally:
                self._tasks.pop(task.greenlet, None)
                process.tasks.pop(task, None)

        task = Task(process, run)
        self._tasks[task.greenlet] = task
        process.tasks[task] = None
        self._resume_later(task, 0.0, 0)
        return task

    def kill(self, process: Process) -> None:
        """As SIGKILL: nothing of it runs any more. Whatever its `finally` clauses ask of servers is not sent."""
        if not process.alive:
            return
        process.alive = False
        here = self._tasks.get(getcurrent())
        for task in list(process.tasks):
            if task is not here:
                task.greenlet.parent = getcurrent()
                task.greenlet.throw(GreenletExit)
        if here is not None and here.process is process:
            raise GreenletExit

    def kill_later(self, process: Process) -> None:
        """At its end: its other threads end with it."""
        self.later(0.0, lambda: self.kill(process))

    def pause(self, process: Process, seconds: float) -> None:
        """As SIGSTOP, and SIGCONT after so many seconds."""
        process.paused_until = max(process.paused_until, self.now + seconds)

    @property
    def steps(self) -> int:
        """How many things have happened."""
        return self._count

    @property
    def current(self) -> Task:
        return self._tasks[getcurrent()]

    @property
    def in_process(self) -> Process | None:
        """Whose code runs now; none while the test's own does."""
        task = self._tasks.get(getcurrent())
        return None if task is None else task.process

    # -- what tasks use ----------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Let others run for so long; a test that is no task lets all of them run."""
        task = self._tasks.get(getcurrent())
        if task is None:
            self.run(self.now + seconds)
            return
        self._check(task.process)
        self.disturb(task.process)
        self._wait(task, seconds)

    def wait(self, ready: Callable[[], bool], waiters: list[Task], seconds: float | None) -> bool:
        """Until it is ``ready`` (whoever makes it so wakes the ``waiters``), or so many seconds; whether it is."""
        task = self._tasks.get(getcurrent())
        if task is None:
            self.run(self.now + (3_600.0 if seconds is None else seconds), ready)
            return ready()
        deadline = None if seconds is None else self.now + seconds
        self._check(task.process)
        while not ready():
            left = None if deadline is None else deadline - self.now
            if left is not None and left <= 0:
                return False
            waiters.append(task)
            try:
                self._wait(task, left)
            finally:
                if task in waiters:
                    waiters.remove(task)
        return True

    def wake(self, waiters: list[Task]) -> None:
        """Whoever waits looks again."""
        for task in waiters:
            if not task.woken:
                task.woken = True
                self._resume_later(task, 0.0, task.turn)
        waiters.clear()

    # -- inside ------------------------------------------------------------------------------------------------

    @staticmethod
    def _check(process: Process) -> None:
        if not process.alive:
            raise GreenletExit

    def _wait(self, task: Task, seconds: float | None) -> None:
        task.turn += 1
        task.woken = False
        if seconds is not None:
            self._resume_later(task, seconds, task.turn)
        self._hub.switch()
        self._check(task.process)

    def _resume_later(self, task: Task, seconds: float, turn: int) -> None:
        def resume() -> None:
            process = task.process
            if not process.alive or task.turn != turn or task.greenlet.dead:
                return
            if process.paused_until > self.now:
                self._resume_later(task, process.paused_until - self.now, turn)
                return
            task.greenlet.parent = self._hub
            task.greenlet.switch()

        self.later(seconds, resume)
