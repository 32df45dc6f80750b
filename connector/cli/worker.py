"""A worker process of `scylla-cdc run`; started by it (`start_worker.py`), not by people.

In, on stdin: one pickled `WorkerOrder`, then an instruction a line; the end of stdin says that the supervisor is gone.
Out, on stdout: one JSON object a line, the worker's reports. Logs go to stderr, as everywhere.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import queue
import signal
import sys
import threading
from functools import partial

from connector.cli.last_resort import LastResort, leave
from connector.cli.logs import Speaker, filter_stderr, set_up_logging
from connector.cli.quick_imports import quick_imports, without_numpy
from connector.secrets import adopt
from connector.stop_signals import on_signals
from connector.worker.instructions import Asked, LogLevel, from_lines
from connector.worker.log_levels import set_level
from connector.worker.messages import EndMessage, Report
from connector.worker.order import WorkerOrder
from connector.worker.telling import Telling

FORCED = 137

# An orderly end that takes longer than this waits for a server that is away. What was left open is ended by whoever
# takes the slots over.
PATIENCE_SECONDS = 8.0
LAST_WORDS_SECONDS = 1.0


def main() -> None:
    filter_stderr()
    order = pickle.load(sys.stdin.buffer)
    assert isinstance(order, WorkerOrder)
    adopt(order.secrets)
    speaker = Speaker(order.configuration.connector.name, order.index)
    set_up_logging(order.log_format, debug=order.debug, speaker=speaker)
    stop = threading.Event()
    for each in (signal.SIGINT, signal.SIGHUP):  # they reach the whole group; the supervisor decides
        signal.signal(each, signal.SIG_IGN)
    # Where every thread stands, on stderr: for a worker that seems to hang.
    faulthandler.register(signal.SIGUSR1)
    instructions: queue.Queue[Asked] = queue.Queue()
    threading.Thread(target=_listen_to_supervisor, args=(stop, instructions), daemon=True).start()
    # The supervisor's, and often one for the whole group or container before it: one stop, whoever asks again.
    with on_signals((signal.SIGTERM,), lambda _: _begin_to_stop(stop)):
        report = Telling(sys.stdout.fileno())
        status = _run(order, stop, instructions, report)
        report.finish(LAST_WORDS_SECONDS)
    # Not sys.exit: clients that still wait for a broker would be waited for.
    leave(status)


def _run(order: WorkerOrder, stop: threading.Event, instructions: queue.Queue[Asked], report: Report) -> int:
    with quick_imports(), without_numpy():
        from connector.worker.collector import collect_rarely
        from connector.worker.process import run_worker

    collect_rarely()
    try:
        return run_worker(
            order.configuration,
            order.index,
            stop,
            report,
            instructions,
            who=order.who,
            noted=order.noted,
            start=order.start,
            warnings=order.warnings,
            ending=partial(_bound_the_end, stop),
        )
    except Exception as error:
        report(EndMessage.of(error))
        logging.getLogger("connector.worker").exception("the worker failed")
        return 1


def _listen_to_supervisor(stop: threading.Event, instructions: queue.Queue[Asked]) -> None:
    """Without a supervisor nobody would replace or stop us, and a restarted one would wait for our slots."""
    begun = b""
    try:
        # Past Python's buffer, whose lock a thread that waits in it would hold when the interpreter ends. It holds no
        # instruction: they are given to those who have reported.
        while read := os.read(sys.stdin.fileno(), 4096):
            whole, _, begun = (begun + read).rpartition(b"\n")
            for each in from_lines(whole):
                if isinstance(each, LogLevel):
                    set_level(each.logger, each.level)
                else:
                    instructions.put(each)
    finally:
        _begin_to_stop(stop)


def _bound_the_end(stop: threading.Event, status: int) -> None:
    """It ends by itself: what it then closes may hang, and nobody would take its place."""
    if not stop.is_set():
        LastResort(PATIENCE_SECONDS, status).arm("its work was done")


def _begin_to_stop(stop: threading.Event) -> None:
    if stop.is_set():
        return
    LastResort(PATIENCE_SECONDS, FORCED).arm()
    stop.set()
