"""`scylla-cdc run`: the connector in the foreground, or several, which start and end together."""

from __future__ import annotations

import argparse
import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from connector.cli.configuration import (
    add_configurations_arguments,
    definitions,
    load_beside,
    load_to_run,
    load_worker,
    problems_of,
)
from connector.cli.early_signals import has_begun
from connector.cli.last_resort import END_SECONDS, LastResort, leave
from connector.cli.numbers import port, positive
from connector.cli.output import Output
from connector.cli.quick_imports import quick_imports, without_numpy
from connector.config import Configuration
from connector.errors import ConfigurationError, Problem, UsageError
from connector.own_python import module_command
from connector.stop_signals import ENDING, on_signals

if TYPE_CHECKING:
    from connector.worker.checks import Waiting
    from connector.worker.shared_state import SharedState
    from connector.worker.slots import Noted
    from connector.worker.supervisor import Supervisor

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
                status = last_resort.status = self._run(args, output, stop, last_resort, stack)
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

    def _run(
        self,
        args: argparse.Namespace,
        output: Output,
        stop: threading.Event,
        last_resort: LastResort,
        stack: contextlib.ExitStack,
    ) -> int:
        with quick_imports(), without_numpy():
            from connector.cli.service_manager import ServiceManager
            from connector.cli.snapshot_progress import SnapshotProgress
            from connector.worker.connect_cluster import ConnectCluster
            from connector.worker.connectors import Connectors
            from connector.worker.order import WorkerOrder
            from connector.worker.own_login import OwnLogin
            from connector.worker.processes import Processes, process_id
            from connector.worker.relogin import Relogin
            from connector.worker.renewal import Renewal
            from connector.worker.shared_state import SharedState
            from connector.worker.slots import positions_of_others
            from connector.worker.steering import Steering
            from connector.worker.supervisor import Supervisor
            from connector.worker.tenants import Preparation

        given = bool(args.config)
        _refuse_what_nobody_can_reach(args)
        #: What the API defines counts; files are what it is told first.
        by_api = not given or args.writable
        configurations, load_again = load_to_run(args) if given else ([], lambda name: None)
        worker = configurations[0] if given else load_worker(args.worker)
        name = worker.connector.name
        login = OwnLogin(worker, partial(load_again, name) if given else partial(load_worker, args.worker))

        def count(configuration: Configuration) -> int:
            tasks = _useful(args.tasks or configuration.connector.tasks_max, configuration)
            _announce(configuration, tasks)
            return tasks

        def order(configuration: Configuration, index: int) -> WorkerOrder:
            return WorkerOrder(configuration, index, args.log_format, args.debug)

        of_files = [] if by_api else configurations
        repeated = [configuration for configuration in of_files for _ in range(count(configuration))]
        # Workers are numbered through, so that each has a name of its own in logs and metrics.
        orders = [order(configuration, index) for index, configuration in enumerate(repeated)]
        supervisor = Supervisor(module_command("connector.cli.start_worker"), orders, lasting=by_api)
        last_resort.also = supervisor.kill
        ServiceManager(supervisor, stop).start()
        steering = Steering(supervisor)
        shared = supervisor.shared = SharedState(worker, login.clients)
        stack.callback(shared.stop)
        renewal: Renewal  # which has the checks made again that ask it
        checks = partial(_checks, shared, supervisor, lambda name: renewal.renew(name, asked=False))
        connectors = None
        if by_api:
            load = partial(load_beside, worker=args.worker)
            connectors = Connectors(supervisor, shared, load, count, order, checks, positions_of_others, stop)
            renewal = connectors.renewal
        else:
            renewal = Renewal(supervisor, load_again, threading.Lock())
        login.start(renewal.renew_all)
        stack.callback(login.stop)
        relogin = Relogin(supervisor, renewal, steering)
        relogin.start()
        stack.callback(relogin.stop)
        validate = partial(problems_of, worker=args.worker)
        cluster = ConnectCluster(
            supervisor, steering, shared, validate, worker, connectors, renewal.renew, login.clients
        )
        directed = partial(renewal.directed, steering.wish)
        if connectors is None:
            shared.start(directed, told=cluster.told)
        else:
            shared.start(directed, connectors.take, cluster.told)
        cluster.worker_id, address = socket.gethostname(), ""
        if args.http_port is not None:
            with quick_imports():
                from connector.page import page_routes
                from connector.rest import rest_routes
                from connector.worker.closer_look import CloserLook
                from connector.worker.http import status_server

            _same_port(configurations)
            others = [*rest_routes(cluster), *page_routes(CloserLook(supervisor, cluster))]
            server = status_server(worker, supervisor, args.http_host, args.http_port, others)
            cluster.worker_id = address = f"{_reached_at(args.http_host)}:{server.port}"
            stack.enter_context(server)
            log.info("metrics, health, status and Kafka Connect's REST API on %s", server.url)
            log.info("web page: %s/ui", server.url)
        # Also without a port: what is asked of others concerns its connectors, and what became of them concerns others.
        processes = cluster.processes = Processes(worker, process_id(address), clients=login.clients)
        supervisor.unlike, supervisor.hanging = processes.unlike, processes.hanging
        stack.callback(processes.stop)
        deleted = tuple if connectors is None else connectors.just_deleted
        processes.start(cluster.own, stop, deleted, supervisor.worker_names)
        if connectors is not None:
            _wait_for_wishes(shared, stop, supervisor)
            connectors.define_first(definitions(args), stop)
        elif len(configurations) > 1:
            # None waits for another one's servers, nor ends for what they object to.
            for configuration in configurations:
                once_more = partial(renewal.checked, checks)
                supervisor.prepare(configuration, partial(Preparation, configuration, stop, once_more))
        else:
            problems, noted = checks(configurations[0], stop, supervisor)
            if problems:
                raise ConfigurationError(dict.fromkeys(problems))
            if noted is not None:
                supervisor.noted[configurations[0].connector.name] = noted
        if not by_api and all(each.connector.reading.snapshot_mode == "initial_only" for each in configurations):
            stack.enter_context(SnapshotProgress(output, supervisor.own_statuses))
        return supervisor.run(stop)


def _refuse_what_nobody_can_reach(args: argparse.Namespace) -> None:
    if args.http_port is not None or (args.config and not args.writable):
        return
    told = "either files of connectors, or --http-port N, where connectors are given by POST"
    what = Problem("CONFIG.json", "is missing", None, told, file="command line")
    if args.config:
        what = Problem("--writable", "is of the REST API, which is not served", None, "--http-port N", "command line")
    raise UsageError([what])


def _checks(
    shared: SharedState,
    supervisor: Supervisor,
    renew: Callable[[str], Configuration | None],
    configuration: Configuration,
    stop: threading.Event,
    waiting: Waiting,
) -> tuple[Sequence[Problem], Noted | None]:
    """What the servers object to, and the offsets topic; if nothing, what that says, if there are marks."""
    from connector.worker.checks import wait_until_checked
    from connector.worker.lost_positions import lost_positions
    from connector.worker.slots import slots_by_marks
    from connector.worker.starting import name_of_start

    found, starts, name = list[str](), supervisor.starts, configuration.connector.name

    def again(before: Configuration) -> Configuration:
        nonlocal configuration
        configuration = renew(name) or before
        return configuration

    try:
        problems = wait_until_checked(configuration, stop, waiting, found, again)
        if not problems:
            _wait_for_wishes(shared, stop, waiting)
            if name not in starts and not stop.is_set():
                starts[name] = name_of_start(configuration, stop, waiting)
        if problems or stop.is_set():
            return problems, None
        noted = slots_by_marks(configuration, stop.is_set)
        lost = None if noted is not None or stop.is_set() else lost_positions(configuration)
    except ConfigurationError as error:
        # Of the offsets topic, whoever of them has read it.
        return error.problems, None
    if lost is not None:
        log.warning("%s", lost)
    supervisor.warnings[name] = (*found, *([] if lost is None else [lost]))
    return problems, noted


def _wait_for_wishes(shared: SharedState, stop: threading.Event, waiting: Waiting) -> None:
    """What was asked before is known before any worker starts."""
    from connector.aside import SILENT_SECONDS

    while (why := shared.wait(stop, SILENT_SECONDS)) is not None:
        waiting.waiting_for = why


def _reached_at(host: str) -> str:
    """A name that tells this process from those on other machines."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "") else host


def _same_port(configurations: Sequence[Configuration]) -> None:
    """All are served by one port: what they say of it must not differ."""
    first = configurations[0].worker.http if configurations else None
    if any(each.worker.http != first for each in configurations):
        raise ConfigurationError(
            [
                Problem(
                    "rest.bearer.token",
                    "the configurations of this run differ in who may use the HTTP port",
                    None,
                    "give them the same rest.bearer.token and listeners.https.ssl.*, or a run of their own",
                )
            ]
        )


def _useful(tasks: int, configuration: Configuration) -> int:
    """A worker without a slot has nothing to do: more workers than slots would only cost memory."""
    from connector.worker.settings import offsets_spec

    slots = offsets_spec(configuration).partitions
    if 0 < slots < tasks:
        log.warning(
            "%d workers configured, starting %d: there are no more slots (offset.storage.partitions)", tasks, slots
        )
        return slots
    return tasks


def _obey(stop: threading.Event, last_resort: LastResort, number: int) -> None:
    last_resort.obey(stop, number)
    log.info("stopping")


def _announce(configuration: Configuration, tasks: int) -> None:
    connector = configuration.connector
    for notice in configuration.notices:
        log.log(logging.WARNING if notice in configuration.warnings else logging.INFO, "%s", notice)
    tables = ", ".join(str(table) for table in connector.reading.tables)
    mode = "exactly once" if connector.delivery.exactly_once else "at least once"
    log.info(
        "connector %s: %s → %s.*, %s, %d worker(s)", connector.name, tables, connector.output.topic_prefix, mode, tasks
    )
    log.info(
        "confidence window %d ms, positions in topic %s, group %s",
        connector.reading.confidence_ms,
        connector.delivery.offset_topic,
        configuration.group,
    )


COMMAND = RunCommand()
