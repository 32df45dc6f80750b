"""`scylla-cdc run`: the connector in the foreground, or several, each with a fate of its own."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import threading
from functools import partial

from connector.cli.configuration import add_configurations_arguments
from connector.cli.early_signals import has_begun
from connector.cli.last_resort import END_SECONDS, LastResort, leave
from connector.cli.numbers import port, positive
from connector.cli.output import Output
from connector.cli.quick_imports import quick_imports, without_numpy
from connector.stop_signals import ENDING, on_signals

log = logging.getLogger(__name__)


class RunCommand:
    name = "run"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_configurations_arguments(parser, required=False)
        parser.add_argument("--tasks", type=positive, metavar="N", help="worker processes (default: tasks.max)")
        parser.add_argument(
            "--http-port",
            type=port,
            metavar="N",
            help="serve /live, /ready, /health, /status, /metrics, Kafka Connect's REST API and a web page (/ui) here",
        )
        parser.add_argument(
            "--http-host", default="127.0.0.1", metavar="HOST", help="address of --http-port (default: loopback)"
        )
        parser.add_argument(
            "--writable",
            action="store_true",
            help="the files' connectors may be changed and deleted by the REST API; what it changed outlives restarts",
        )

    def run(self, args: argparse.Namespace, output: Output) -> int:
        stop, last_resort = threading.Event(), LastResort(END_SECONDS, status=1)
        try:
            with (
                # From the first file on: stores of secrets, and their names, may be slow to answer.
                on_signals(ENDING, partial(_obey, stop, last_resort)),
                contextlib.ExitStack() as stack,
                # What is closed behind that is courtesy.
                last_resort.behind(),
            ):
                with quick_imports(), without_numpy():
                    from connector.cli.service import Service
                service = Service(args, stop, stack)
                last_resort.also = service.kill
                status = last_resort.status = service.run(output)
        finally:
            has_begun()  # whoever asks now does not make an end in order of one that failed
            if not stop.is_set():
                last_resort.disarm()
        if stop.is_set():
            # That nobody takes our results is an error.
            sys.stdout.flush()
            # Not sys.exit: a client that still waits for a server, in a thread of its own, would be waited for.
            leave(status)
        return status


def _obey(stop: threading.Event, last_resort: LastResort, number: int) -> None:
    last_resort.obey(stop, number)
    log.info("stopping")


COMMAND = RunCommand()
