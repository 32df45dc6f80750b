"""All that one `run` consists of: workers, what steers them and tells of them, and the API that asks for both.

In: the command's arguments. Out: the exit status, once every worker has ended or somebody wants an end.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import socket
import threading
from collections.abc import Sequence
from functools import partial

from connector.cli.configuration import definitions, load_beside, load_to_run, load_worker, problems_of
from connector.cli.output import Output
from connector.cli.quick_imports import quick_imports
from connector.cli.service_manager import ServiceManager
from connector.cli.snapshot_progress import SnapshotProgress
from connector.cli.start_checks import StartChecks, wait_for_wishes
from connector.config import Configuration
from connector.errors import ConfigurationError, Problem, UsageError
from connector.own_python import module_command
from connector.worker.connect_cluster import ConnectCluster
from connector.worker.connectors import Connectors
from connector.worker.order import WorkerOrder
from connector.worker.own_login import OwnLogin
from connector.worker.processes import Processes, process_id
from connector.worker.relogin import Relogin
from connector.worker.renewal import Renewal
from connector.worker.settings import offsets_spec
from connector.worker.shared_state import SharedState
from connector.worker.slots import positions_of_others
from connector.worker.steering import Steering
from connector.worker.supervisor import Supervisor
from connector.worker.tenants import Preparation

log = logging.getLogger(__name__)


class Service:
    """Its connectors are those of files, or, if there are none or the API may change them, those that are defined in
    the config topic, which files are then only the first to write. ``stack`` closes what it opens."""

    def __init__(self, args: argparse.Namespace, stop: threading.Event, stack: contextlib.ExitStack) -> None:
        self._args, self._stop, self._stack = args, stop, stack
        _refuse_what_nobody_can_reach(args)
        by_files = bool(args.config)
        self._configurations, load_again = load_to_run(args) if by_files else ([], lambda name: None)
        if args.http_port is not None:
            _refuse_differing_ports(self._configurations)
        #: Whose servers and port the process itself uses.
        self._worker = self._configurations[0] if by_files else load_worker(args.worker)
        name = self._worker.connector.name
        self._login = OwnLogin(
            self._worker, partial(load_again, name) if by_files else partial(load_worker, args.worker)
        )
        by_api = not by_files or args.writable
        orders = [] if by_api else self._orders()
        self._supervisor = Supervisor(module_command("connector.cli.start_worker"), orders, lasting=by_api)
        self._shared = self._supervisor.shared = SharedState(self._worker, self._login.clients)
        self._checks = StartChecks(self._shared, self._supervisor, self._renew)
        self._connectors = self._defined_by_api() if by_api else None
        self._renewal = (
            Renewal(self._supervisor, load_again, threading.Lock())
            if self._connectors is None
            else self._connectors.renewal
        )
        self._steering = Steering(self._supervisor)
        self._cluster = ConnectCluster(
            self._supervisor,
            self._steering,
            self._shared,
            partial(problems_of, worker=args.worker),
            self._worker,
            defined=self._connectors,
            renew=self._renewal.renew,
            clients=self._login.clients,
        )

    def kill(self) -> None:
        """Its workers, at once."""
        self._supervisor.kill()

    def run(self, output: Output) -> int:
        ServiceManager(self._supervisor, self._stop).start()
        self._stack.callback(self._shared.stop)
        self._keep_logins()
        self._listen()
        self._join_others(self._serve())
        self._begin_connectors()
        only_snapshots = [each.connector.reading.snapshot_mode == "initial_only" for each in self._configurations]
        if self._connectors is None and all(only_snapshots):
            self._stack.enter_context(SnapshotProgress(output, self._supervisor.own_statuses))
        return self._supervisor.run(self._stop)

    def _orders(self) -> list[WorkerOrder]:
        """Workers are numbered through, so that each has a name of its own in logs and metrics."""
        workers = [each for each in self._configurations for _ in range(self._count(each))]
        return [self._order(configuration, index) for index, configuration in enumerate(workers)]

    def _defined_by_api(self) -> Connectors:
        load = partial(load_beside, worker=self._args.worker)
        return Connectors(
            self._supervisor,
            self._shared,
            load,
            self._count,
            self._order,
            self._checks,
            positions_of_others,
            self._stop,
        )

    def _count(self, configuration: Configuration) -> int:
        tasks = _useful(self._args.tasks or configuration.connector.tasks_max, configuration)
        announce(configuration, tasks)
        return tasks

    def _order(self, configuration: Configuration, index: int) -> WorkerOrder:
        return WorkerOrder(configuration, index, self._args.log_format, self._args.debug)

    def _renew(self, connector: str) -> Configuration | None:
        return self._renewal.renew(connector, asked=False)

    def _keep_logins(self) -> None:
        self._login.start(self._renewal.renew_all)
        self._stack.callback(self._login.stop)
        relogin = Relogin(self._supervisor, self._renewal, self._steering)
        relogin.start()
        self._stack.callback(relogin.stop)

    def _listen(self) -> None:
        """To what is asked of connectors, here and in other processes."""
        directed = partial(self._renewal.directed, self._steering.wish)
        if self._connectors is None:
            self._shared.start(directed, told=self._cluster.told)
        else:
            self._shared.start(directed, self._connectors.take, self._cluster.told)

    def _serve(self) -> str:
        """The address of the HTTP port; none without one."""
        self._cluster.worker_id = socket.gethostname()
        if self._args.http_port is None:
            return ""
        with quick_imports():
            from connector.page import page_routes
            from connector.rest import rest_routes
            from connector.worker.closer_look import CloserLook
            from connector.worker.http import status_server

        host = self._args.http_host
        others = [*rest_routes(self._cluster), *page_routes(CloserLook(self._supervisor, self._cluster))]
        server = status_server(self._worker, self._supervisor, host, self._args.http_port, others)
        self._cluster.worker_id = f"{_reached_at(host)}:{server.port}"
        self._stack.enter_context(server)
        log.info("metrics, health, status and Kafka Connect's REST API on %s", server.url)
        log.info("web page: %s/ui", server.url)
        return self._cluster.worker_id

    def _join_others(self, address: str) -> None:
        """Also without a port: what is asked of others concerns these connectors, and what became of these concerns
        others."""
        processes = Processes(self._worker, process_id(address), clients=self._login.clients)
        self._cluster.processes = processes
        self._supervisor.unlike, self._supervisor.hanging = processes.unlike, processes.hanging
        self._stack.callback(processes.stop)
        deleted = tuple if self._connectors is None else self._connectors.just_deleted
        processes.start(self._cluster.own, self._stop, deleted, self._supervisor.worker_names)

    def _begin_connectors(self) -> None:
        if self._connectors is not None:
            wait_for_wishes(self._shared, self._stop, self._supervisor)
            self._connectors.define_first(definitions(self._args), self._stop)
        elif len(self._configurations) > 1:
            # None waits for another one's servers, nor ends for what they object to.
            for configuration in self._configurations:
                once_more = partial(self._renewal.checked, self._checks)
                self._supervisor.prepare(configuration, partial(Preparation, configuration, self._stop, once_more))
        else:
            self._check(self._configurations[0])

    def _check(self, only: Configuration) -> None:
        """What ails a connector that is alone ends the run."""
        problems, noted = self._checks(only, self._stop, self._supervisor)
        if problems:
            raise ConfigurationError(dict.fromkeys(problems))
        if noted is not None:
            self._supervisor.noted[only.connector.name] = noted


def _refuse_what_nobody_can_reach(args: argparse.Namespace) -> None:
    if args.http_port is not None or (args.config and not args.writable):
        return
    told = "either files of connectors, or --http-port N, where connectors are given by POST"
    what = Problem("CONFIG.json", "is missing", None, told, file="command line")
    if args.config:
        what = Problem("--writable", "is of the REST API, which is not served", None, "--http-port N", "command line")
    raise UsageError([what])


def _refuse_differing_ports(configurations: Sequence[Configuration]) -> None:
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


def _reached_at(host: str) -> str:
    """A name that tells this process from those on other machines."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "") else host


def _useful(tasks: int, configuration: Configuration) -> int:
    """A worker without a slot has nothing to do: more workers than slots would only cost memory."""
    slots = offsets_spec(configuration).partitions
    if 0 < slots < tasks:
        log.warning(
            "%d workers configured, starting %d: there are no more slots (offset.storage.partitions)", tasks, slots
        )
        return slots
    return tasks


def announce(configuration: Configuration, tasks: int) -> None:
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
