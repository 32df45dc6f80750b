"""What the product takes from Python's library to wait and to run things at once, on a scheduler's virtual time.

In: a scheduler. Out: `installed`: for its duration every loaded module of the product finds these in place of `time`,
`threading`, `queue`, `random`, futures and pools; also where a function took `time.monotonic` as its default. Nothing
in the product knows. Other threads of this process, which other tests may have left, go on with the real ones.
"""

from __future__ import annotations

import contextlib
import queue as real_queue
import random as real_random
import secrets as real_secrets
import sys
import threading as real_threading
import time as real_time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures as real_futures
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from tenacity import wait as waits

from tests.simulation.scheduler import EPOCH, Scheduler, Task

#: Whoever waits for less than the clock can tell would wait for ever: time passes by nothing else here.
LEAST_SECONDS = 1e-6


class Clock:
    """In place of `time`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.sleep = scheduler.pass_time

    def monotonic(self) -> float:
        return 1_000.0 + self._scheduler.now

    def time(self) -> float:
        process = self._scheduler.in_process or self._scheduler.outside
        return EPOCH + self._scheduler.now + process.skew

    def time_ns(self) -> int:
        return round(self.time() * 1_000_000) * 1_000

    def perf_counter(self) -> float:
        return self.monotonic()


class Thread:
    """In place of `threading.Thread`."""

    def __init__(
        self,
        scheduler: Scheduler,
        target: Callable[..., Any],
        args: tuple[Any, ...] = (),
        daemon: bool | None = None,
        name: str | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._call = lambda: target(*args)

    def start(self) -> None:
        self._scheduler.spawn(self._scheduler.in_process or self._scheduler.outside, self._call)


class Event:
    """In place of `threading.Event`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._happened = False
        self._waiters: list[Task] = []

    def is_set(self) -> bool:
        return self._happened

    def set(self) -> None:
        self._happened = True
        self._scheduler.wake(self._waiters)

    def clear(self) -> None:
        self._happened = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait(self.is_set, self._waiters, timeout)


class Lock:
    """In place of `threading.Lock`: whoever waits for it lets the others run."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._held = False
        self._waiters: list[Task] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        seconds = 0.0 if not blocking else None if timeout < 0 else timeout
        if self._held and not self._scheduler.wait(lambda: not self._held, self._waiters, seconds):
            return False
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        self._scheduler.wake(self._waiters)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Queue:
    """In place of `queue.Queue`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[Any] = deque()
        self._waiters: list[Task] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._scheduler.wake(self._waiters)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if timeout and timeout < LEAST_SECONDS:
            timeout = LEAST_SECONDS
        if not self._scheduler.wait(lambda: bool(self._items), self._waiters, timeout if block else 0.0):
            raise real_queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(False)

    def empty(self) -> bool:
        return not self._items


class Future(real_futures.Future):  # type: ignore[type-arg]
    """In place of `concurrent.futures.Future`: whoever waits for the result lets the others run."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__()
        self._scheduler = scheduler
        self.tasks: list[Task] = []
        self.add_done_callback(lambda _: scheduler.wake(self.tasks))

    def result(self, timeout: float | None = None) -> Any:
        if not self._scheduler.wait(self.done, self.tasks, timeout):
            raise TimeoutError
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not self._scheduler.wait(self.done, self.tasks, timeout):
            raise TimeoutError
        return super().exception(0)


def wait(scheduler: Scheduler, awaited: Sequence[Future], timeout: float | None = None) -> Any:
    """In place of `concurrent.futures.wait`, for one future: whether it is among those that are done."""
    (future,) = awaited
    done = scheduler.wait(future.done, future.tasks, timeout)
    return SimpleNamespace(done={future} if done else set(), not_done=set() if done else {future})


class Pool:
    """In place of `ThreadPoolExecutor`: at most so many tasks of the process at once."""

    def __init__(self, scheduler: Scheduler, max_workers: int = 4, thread_name_prefix: str = "") -> None:
        self._scheduler = scheduler
        self._process = scheduler.in_process or scheduler.outside
        self._most = max_workers
        self._running = 0
        self._waiting: deque[tuple[Future, Callable[[], Any]]] = deque()

    def submit(self, call: Callable[..., Any], *args: Any) -> Future:
        future = Future(self._scheduler)
        self._waiting.append((future, lambda: call(*args)))
        self._start()
        return future

    def _start(self) -> None:
        while self._waiting and self._running < self._most:
            future, call = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                self._running += 1
                self._scheduler.spawn(self._process, lambda future=future, call=call: self._run(future, call))

    def _run(self, future: Future, call: Callable[[], Any]) -> None:
        try:
            result = call()
        except Exception as error:
            self._running -= 1
            future.set_exception(error)
        else:
            self._running -= 1
            future.set_result(result)
        self._start()

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future, _ in self._waiting:
                future.cancel()
        if wait:
            nobody: list[Task] = []
            while self._running and not self._scheduler.wait(lambda: not self._running, nobody, 0.01):
                pass

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


class Ours:
    """In place of a module, a class or a function of them: the simulated one for the simulation's thread alone. Time
    would pass for it by whatever another one waits for."""

    def __init__(self, real: Any, simulated: Any) -> None:
        self._real, self._simulated, self._thread = real, simulated, real_threading.get_ident()

    # A worker looks at the clock in each turn, a dozen times: one call less for each is felt.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._simulated if real_threading.get_ident() == self._thread else self._real, name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return (self._simulated if real_threading.get_ident() == self._thread else self._real)(*given, **named)


def substitutes(scheduler: Scheduler) -> Mapping[int, Any]:
    """By the identity of what they replace."""
    clock = Clock(scheduler)
    threads = SimpleNamespace(
        **{name: getattr(real_threading, name) for name in ("RLock", "current_thread", "get_ident")},
        Thread=lambda **given: Thread(scheduler, **given),
        Event=lambda: Event(scheduler),
        Lock=lambda: Lock(scheduler),
    )
    queues = SimpleNamespace(Queue=lambda: Queue(scheduler), Empty=real_queue.Empty)

    class _Random(real_random.Random):
        def __init__(self, seed: int | None = None) -> None:
            super().__init__(scheduler.random.getrandbits(32) if seed is None else seed)

    draws = SimpleNamespace(Random=_Random, uniform=scheduler.random.uniform, random=scheduler.random.random)
    return {
        id(real_time): clock,
        id(real_time.monotonic): clock.monotonic,
        id(real_time.time): clock.time,
        id(real_time.time_ns): clock.time_ns,
        id(real_time.perf_counter): clock.perf_counter,
        id(real_threading): threads,
        id(real_queue): queues,
        id(real_random): draws,
        id(real_secrets): SimpleNamespace(
            token_hex=lambda size: f"{scheduler.random.getrandbits(8 * size):0{2 * size}x}"
        ),
        id(real_futures.wait): lambda awaited, timeout=None: wait(scheduler, awaited, timeout),
        id(real_futures.Future): lambda: Future(scheduler),
        id(real_futures.ThreadPoolExecutor): lambda *a, **given: Pool(scheduler, *a, **given),
    }


@contextlib.contextmanager
def installed(scheduler: Scheduler, more: Mapping[int, Any], package: str = "connector") -> Iterator[None]:
    """The product on virtual time, with ``more`` in place of other things it uses (by their identity)."""
    found = {**substitutes(scheduler), **more}
    undo: list[Callable[[], None]] = []
    # What tenacity draws would be the process's own numbers, of which its other threads take some, too.
    _substitute(waits, {id(real_random): real_random.Random(scheduler.random.getrandbits(32))}, undo)
    try:
        for name, module in list(sys.modules.items()):
            if name == package or name.startswith(f"{package}."):
                _substitute(module, found, undo)
        yield
    finally:
        for each in reversed(undo):
            each()


def _instead(real: Any, found: Mapping[int, Any]) -> Any:
    if id(real) not in found:
        return real
    simulated = found[id(real)]
    return Ours(real, simulated) if callable(real) or isinstance(real, ModuleType) else simulated


def _substitute(module: ModuleType, found: Mapping[int, Any], undo: list[Callable[[], None]]) -> None:
    space = vars(module)
    for name, value in list(space.items()):
        if id(value) in found:
            undo.append(lambda name=name, value=value: space.__setitem__(name, value))
            space[name] = _instead(value, found)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for attribute in list(vars(value).values()):
                _substitute_defaults(getattr(attribute, "__func__", attribute), found, undo)
        elif isinstance(value, FunctionType) and value.__module__ == module.__name__:
            _substitute_defaults(value, found, undo)


def _substitute_defaults(function: Any, found: Mapping[int, Any], undo: list[Callable[[], None]]) -> None:
    if not isinstance(function, FunctionType):
        return
    defaults, keywords = function.__defaults__, function.__kwdefaults__
    if defaults and any(id(each) in found for each in defaults):
        undo.append(lambda: setattr(function, "__defaults__", defaults))
        function.__defaults__ = tuple(_instead(each, found) for each in defaults)
    if keywords and any(id(each) in found for each in keywords.values()):
        undo.append(lambda: setattr(function, "__kwdefaults__", keywords))
        function.__kwdefaults__ = {name: _instead(each, found) for name, each in keywords.items()}
