"""Calls of servers' clients that may take long, in threads of their own.

In: a call. Out: its answer, once there is one: while a client's call waits, a signal would not be heard in the thread
that made it. How servers that are away are waited for is said here as well, for all who do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

LISTEN_SECONDS = 0.1
# Without an answer: what is asked is shown from then on.
SILENT_SECONDS = 2.0
# Between attempts.
LONGEST_PAUSE = 10.0


def aside(call: Callable[[], T], name: str) -> Future[T]:
    """``name``: the thread's. It does not keep the process from ending."""
    answer: Future[T] = Future()
    threading.Thread(target=_answer, args=(call, answer), daemon=True, name=name).start()
    return answer


def _answer(call: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(call())
    except BaseException as error:
        answer.set_exception(error)
    finally:
        # An error knows this frame: together they would keep whatever the call had at hand, clients of servers with
        # all their threads and connections, until the garbage collector comes by.
        del call, answer
