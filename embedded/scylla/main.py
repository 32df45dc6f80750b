"""The embedded server in the foreground: options, start, ready line, end.

In: parsed command line options. Out: the process's exit status: 0 after SIGTERM or SIGINT, 1 if it cannot start.
The first line on stdout is the JSON ready line with the addresses.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connector.errors import EmbeddedError, Problem, UsageError
from connector.stop_signals import hangup
from embedded.scylla.identity import DATACENTER
from embedded.scylla.versions import EXTENSIONS, NEWEST, VERSIONS, version_like

if TYPE_CHECKING:
    from embedded.scylla.cluster import Cluster, Settings

DEFAULT_VNODES: Final = 16
DEFAULT_RING_DELAY: Final = 30.0
_PARENT_CHECK_SECONDS: Final = 1.0


def _at_least(lowest: int, what: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = lowest - 1
        if number < lowest:
            raise argparse.ArgumentTypeError(f"{what} must be a whole number of at least {lowest}, not {text!r}")
        return number

    return parse


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 (any free one) to 65535, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"a delay is a number of seconds from 0 on, not {text!r}")
    return seconds


def _loopback(text: str) -> IPv4Address:
    try:
        address = IPv4Address("127.0.0.1" if text == "localhost" else text)
    except AddressValueError:
        raise argparse.ArgumentTypeError(f"the host must be an IPv4 loopback address, not {text!r}") from None
    if not address.is_loopback:
        raise argparse.ArgumentTypeError(f"the embedded server listens on loopback only, not on {text}")
    return address


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"datacenters are names with commas between them, not {text!r}")
    return names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `embedded scylla`."""
    add = parser.add_argument
    add("--host", type=_loopback, default=IPv4Address("127.0.0.1"), help="address of the first node (127.0.0.1)")
    add("--port", type=_port, default=0, help="CQL port of every node; a free one if not given")
    add("--api-port", type=_port, default=0, help="port of the admin interface; a free one if not given")
    add("--nodes", type=_at_least(1, "nodes"), default=1, help="number of nodes, each on its own address (1)")
    add(
        "--datacenters",
        type=_names,
        metavar="NAME,…",
        help=f"each node's datacenter, in turn where there are more nodes; at least as many nodes ({DATACENTER})",
    )
    add("--vnodes", type=_at_least(1, "vnodes"), default=DEFAULT_VNODES, help=f"tokens per node ({DEFAULT_VNODES})")
    add("--shards", type=_at_least(1, "shards"), default=1, help="shards per node (1)")
    add(
        "--ring-delay",
        type=_seconds,
        default=DEFAULT_RING_DELAY,
        metavar="SECONDS",
        help="a new stream set takes effect twice this plus 5 s after its creation, or at once if 0 (30)",
    )
    add("--init", type=Path, metavar="FILE.cql", help="statements to run before the server is ready")
    add("--user", help="the only user that can log in (default: no authentication)")
    add("--password", help="that user's password (or SCYLLA_PASSWORD)")
    add("--tls-cert", metavar="FILE", help="certificate (PEM): encrypted connections only")
    add("--tls-key", metavar="FILE", help="its key (PEM)")
    add("--tls-client-ca", metavar="FILE", help="only clients with a certificate of this authority (PEM)")
    add("--seed", type=int, help="the same ring and stream ids at every start")
    add(
        "--like",
        default=NEWEST,
        metavar="VERSION",
        help=f"the ScyllaDB version to imitate: {', '.join(VERSIONS)} ({NEWEST})",
    )
    add(
        "--without",
        action="append",
        default=[],
        choices=EXTENSIONS,
        metavar="EXTENSION",
        help=f"disable an extension of the protocol, repeatable: {', '.join(EXTENSIONS)}",
    )
    add("--end-with-stdin", action="store_true", help=argparse.SUPPRESS)


def _misuse(option: str, problem: str) -> UsageError:
    return UsageError([Problem(property=option, problem=problem, file="command line")])


def _settings(args: argparse.Namespace) -> Settings:
    from embedded.scylla.auth import Credentials
    from embedded.scylla.cluster import Settings

    password = args.password
    if args.user is not None and password is None:
        password = os.environ.get("SCYLLA_PASSWORD")
    if (args.user is None) != (password is None):
        missing, given = ("--password", "--user") if password is None else ("--user", "--password")
        raise _misuse(missing, f"is missing: it goes with {given}")
    if args.tls_cert is None and (args.tls_key or args.tls_client_ca):
        raise _misuse("--tls-cert", "is missing: --tls-key and --tls-client-ca need it")
    try:
        version_like(args.like)
    except EmbeddedError as error:
        raise _misuse("--like", str(error)) from None
    datacenters = args.datacenters or (DATACENTER,)
    return Settings(
        nodes=max(args.nodes, len(datacenters)),
        datacenters=datacenters,
        vnodes=args.vnodes,
        shards=args.shards,
        ring_delay=args.ring_delay,
        seed=args.seed,
        credentials=None if args.user is None else Credentials(args.user, password),
        address=args.host,
        like=args.like,
        without=tuple(args.without),
    )


def serve(args: argparse.Namespace) -> int:
    """Run until told to stop. What keeps it from starting is an `EmbeddedError`, or a `UsageError`."""
    return asyncio.run(_serve(args))


def _allow_many_connections() -> None:
    """The usual limit of 1024 open files is a soft one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(args: argparse.Namespace) -> int:
    settings = _settings(args)
    _allow_many_connections()
    from embedded.scylla.admin import Admin
    from embedded.scylla.cluster import Cluster
    from embedded.scylla.server import Server
    from embedded.scylla.tls import server_context

    tls = None if args.tls_cert is None else server_context(args.tls_cert, args.tls_key, args.tls_client_ca)
    stopping = asyncio.Event()
    with _stop_on_signals(stopping), _stop_with_parent(stopping, args.end_with_stdin):
        cluster = Cluster(settings)
        if args.init is not None:
            run_script(cluster, args.init)
        server = Server(cluster, tls=tls)
        admin = Admin(server)
        await admin.start(str(args.host), args.api_port)
        await server.start(args.port or None)
        # What exists now lives as long as the process: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        print(json.dumps({"scylla": f"{args.host}:{server.port}", "api": admin.url}), flush=True)
        await stopping.wait()
        await server.stop()
        await admin.stop()
    return 0


def run_script(cluster: Cluster, path: Path) -> None:
    """The statements of a file, in its order; the first that fails is an error that names it."""
    from embedded.scylla.errors import CqlError
    from embedded.scylla.results import RequestContext, SetKeyspace
    from embedded.scylla.script import statements

    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise EmbeddedError(f"cannot read {path}: {error}") from None
    keyspace = None
    for number, statement in enumerate(statements(text), 1):
        context = RequestContext(keyspace=keyspace, node=cluster.nodes[0])
        try:
            result = cluster.engine.execute(statement, (), context)
        except CqlError as error:
            shown = " ".join(statement.split())
            raise EmbeddedError(f"{path}, statement {number} ({shown[:80]}): {error}") from None
        if isinstance(result, SetKeyspace):
            keyspace = result.keyspace


@contextlib.contextmanager
def _stop_on_signals(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT, *hangup())
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _stop_with_parent(stopping: asyncio.Event, wanted: bool) -> Iterator[None]:
    """End when the process that started us has gone: its end of our stdin closes, or we get another parent (where a
    forked child of it keeps the pipe open)."""
    if not wanted:
        yield
        return
    loop = asyncio.get_running_loop()
    parent = os.getppid()

    def readable() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            stopping.set()

    def check() -> None:
        if os.getppid() != parent:
            stopping.set()
        elif not stopping.is_set():
            loop.call_later(_PARENT_CHECK_SECONDS, check)

    loop.add_reader(0, readable)
    check()
    try:
        yield
    finally:
        loop.remove_reader(0)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="embedded scylla", description="A CQL server with ScyllaDB's CDC.")
    add_arguments(parser)
    try:
        return serve(parser.parse_args(argv))
    except (EmbeddedError, UsageError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
