"""Chores: blocking calls, run outside the thread that owns all state.

In: a blocking function and what to do with its answer. Out: through ``sink``, a `ChoreDone` whose `finish` the owner
thread calls when it comes to it; so the answer is used by the owner alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

THREADS = 6


@dataclass(frozen=True, slots=True)
class ChoreDone:
    """An answer, or an error, and who wants it."""

    then: Callable[[Any, BaseException | None], None]
    result: Any
    error: BaseException | None

    def finish(self) -> None:
        self.then(self.result, self.error)


class Chores:
    """A few threads that hand everything back."""

    def __init__(self, sink: Callable[[ChoreDone], None]) -> None:
        self._sink = sink
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="chore")
        self._closed = False

    def submit(self, call: Callable[[], Any], then: Callable[[Any, BaseException | None], None]) -> None:
        """Run ``call`` elsewhere; the owner will run ``then(result, error)``."""
        if self._closed:
            return

        def done(future: Future[Any]) -> None:
            if not future.cancelled():
                error = future.exception()
                self._sink(ChoreDone(then, None if error else future.result(), error))

        self._pool.submit(call).add_done_callback(done)

    def close(self) -> None:
        """Take no more; what is under way ends in its own time, unheard."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)
