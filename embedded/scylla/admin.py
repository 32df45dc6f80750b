"""The admin interface: ScyllaDB's own path for repairing CDC streams, and `/embedded/…` for what only a double can do.

In: HTTP requests with JSON bodies. Out: JSON. Every change is complete when its answer is sent. `docs/embedded.md`
lists the endpoints for users; `ROUTES` below is the same list for the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from connector.errors import EmbeddedError
from embedded.scylla import admin_data
from embedded.scylla.errors import CqlError
from embedded.scylla.http import ApiError, ApiRequest, start_http
from embedded.scylla.nodes import Node
from embedded.scylla.preload_request import preload
from embedded.scylla.server import Server
from embedded.scylla.versions import version_like

Endpoint = Callable[["Admin", ApiRequest, tuple[str, ...]], Awaitable[Any]]


def _options(body: Mapping[str, Any], **known: type | tuple[type, ...]) -> dict[str, Any]:
    """The body's values, with all that is wrong with them in one answer."""
    problems = [f"unknown option {name!r}" for name in body if name not in known]
    for name, kind in known.items():
        value = body.get(name)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            problems.append(f"{name} cannot be {value!r}")
    if problems:
        listed = ", ".join(known) or "none"
        raise ApiError(HTTPStatus.BAD_REQUEST, "; ".join(problems) + f" (options: {listed})")
    return {name: body.get(name) for name in known}


class Admin:
    """Serves the interface for one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cluster = server.cluster
        self.url = ""
        self.preloading = asyncio.Lock()
        self._http: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        try:
            self._http = await start_http(self.handle, host, port)
        except OSError as error:
            raise EmbeddedError(f"{host}:{port} cannot be used for the admin interface: {error.strerror}") from None
        taken = self._http.sockets[0].getsockname()[1]
        self.url = f"http://{host}:{taken}"

    async def stop(self) -> None:
        if self._http is not None:
            self._http.close()

    async def handle(self, request: ApiRequest) -> Any:
        known_path = False
        for method, template, endpoint in ROUTES:
            found = _match(template, request.path)
            if found is None:
                continue
            known_path = True
            if method == request.method:
                try:
                    return await endpoint(self, request, found)
                except (ValueError, KeyError, EmbeddedError) as error:
                    shown = error.args[0] if isinstance(error, KeyError) and error.args else error
                    raise ApiError(HTTPStatus.BAD_REQUEST, str(shown)) from None
        if known_path:
            raise ApiError(HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method} is not for this path")
        raise ApiError(HTTPStatus.NOT_FOUND, "no such path; GET /embedded lists all")

    def node(self, text: str) -> Node:
        if not _is_number(text) or int(text) not in self.cluster.nodes:
            raise ApiError(HTTPStatus.NOT_FOUND, f"there is no node {text}")
        return self.cluster.nodes[int(text)]


def _match(template: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The parts of the path that stand where the template has `*`."""
    if len(template) != len(path) or any(want not in ("*", have) for want, have in zip(template, path)):
        return None
    return tuple(have for want, have in zip(template, path) if want == "*")


async def _index(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return [f"{method} /{'/'.join(template)}" for method, template, _ in ROUTES]


async def _new_generation(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    options = _options(request.body, keep=list)
    generation = admin.cluster.streams.vnodes.renew(keep=options["keep"] or ())
    return {"timestamp": generation.timestamp, "streams": len(generation.all_streams())}


async def _streams(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return admin_data.streams(admin.cluster)


async def _change_tablets(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    options = _options(request.body, tablets=int, replace=bool, close=list, open=list, random=int)
    changed = admin_data.change_tablets(admin.cluster, names[0], names[1], options)
    return admin_data.stream_set(changed) if changed is not None else {"unchanged": True}


async def _ring_delay(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    options = _options(request.body, seconds=(int, float))
    if options["seconds"] is not None:
        if options["seconds"] < 0:
            raise ValueError("seconds cannot be negative")
        admin.cluster.streams.ring_delay = float(options["seconds"])
    return {"seconds": admin.cluster.streams.ring_delay}


async def _clock(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return admin_data.clock(admin.cluster.clock)


async def _move_clock(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    options = _options(request.body, move_ms=(int, float), set_ms=(int, float), freeze=bool, resume=bool, reset=bool)
    admin_data.move_clock(admin.cluster.clock, options)
    return admin_data.clock(admin.cluster.clock)


async def _nodes(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return [node.describe() for node in admin.cluster.nodes]


async def _add_node(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    options = _options(request.body, datacenter=str, tokens=bool)
    tokens = options["tokens"] is not False
    return (await admin.server.add_node(options["datacenter"], tokens=tokens)).describe()


async def _remove_node(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    node = admin.node(names[0])
    await admin.server.remove_node(node)
    return node.describe()


async def _stop_node(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    options = _options(request.body, missed=bool)
    await admin.server.stop_node(admin.node(names[0]), missed=bool(options["missed"]))
    return admin.node(names[0]).describe()


async def _start_node(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    """As it was, or as another version: that is how clusters are upgraded; or another one in its place."""
    options = _options(request.body, like=str, without=list, replaced=bool)
    node = admin.node(names[0])
    if options["replaced"] and node.up:
        raise ValueError(f"node {node.number} is running: stop it before it is replaced")
    if options["like"] is not None or options["without"] is not None:
        if node.up:
            raise ValueError(f"node {node.number} is running: stop it before it is upgraded")
        node.version = version_like(options["like"] or node.version.line, options["without"] or ())
    await admin.server.start_node(node, replaced=bool(options["replaced"]))
    return node.describe()


async def _stale_node(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    """Show the streams as they were known at a time, by default now; or write to those, or both. Or hear of no change
    of the schema any more."""
    options = _options(request.body, as_of_ms=int, behind_ms=int, shows=bool, writes=bool, schema=bool)
    node, now = admin.node(names[0]), admin.cluster.clock.now_ms()
    if options["schema"]:
        node.schema = admin.cluster.schema.remembered()
        return node.describe()
    as_of = options["as_of_ms"] if options["as_of_ms"] is not None else now - (options["behind_ms"] or 0)
    node.stale_as_of = None if options["shows"] is False else as_of
    node.writes_as_of = as_of if options["writes"] else None
    return node.describe()


async def _fresh_node(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    node = admin.node(names[0])
    node.stale_as_of = node.writes_as_of = node.schema = None
    return node.describe()


async def _connections(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return admin_data.connections(admin.cluster)


async def _drop_connections(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    options = _options(request.query, node=str)
    chosen = list(admin.cluster.nodes) if options["node"] is None else [admin.node(options["node"])]
    return {"dropped": sum(admin.server.drop_connections(node) for node in chosen)}


async def _forget_prepared(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    """As after a restart of every node: clients are told to prepare again."""
    forgotten = 0
    for node in admin.cluster.nodes:
        forgotten += len(node.prepared)
        node.prepared.clear()
    return {"forgotten": forgotten}


async def _faults(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return [fault.describe() for fault in admin.cluster.faults.rules.values()]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


async def _add_fault(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return admin.cluster.faults.add(request.body).describe()


async def _remove_fault(admin: Admin, request: ApiRequest, names: tuple[str, ...]) -> Any:
    if not _is_number(names[0]) or int(names[0]) not in admin.cluster.faults.rules:
        raise ApiError(HTTPStatus.NOT_FOUND, f"there is no fault {names[0]}")
    admin.cluster.faults.remove(int(names[0]))
    return {"removed": int(names[0])}


async def _clear_faults(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    admin.cluster.faults.clear()
    return []


async def _counters(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    return admin.cluster.counters.describe()


async def _reset_counters(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    admin.cluster.counters.reset()
    return admin.cluster.counters.describe()


async def _cql(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    options = _options(request.body, statement=str, keyspace=str, timestamp=int)
    if options["statement"] is None:
        raise ValueError("statement is missing")
    return _carried_out(admin, options["statement"], options["keyspace"], options["timestamp"])


def _carried_out(admin: Admin, statement: str, keyspace: str | None, timestamp: int | None) -> dict[str, Any]:
    try:
        return admin_data.run_cql(admin.cluster, statement, keyspace, timestamp)
    except CqlError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"{type(error).__name__} (0x{error.code:04X}): {error}") from None


async def _service_delete(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    """A DELETE that is logged as the system's own, as those of per-row TTL are."""
    options = _options(request.body, statement=str, timestamp=int)
    words = (options["statement"] or "").split(None, 1)
    if not words or words[0].upper() != "DELETE":
        raise ValueError("statement must be a DELETE")
    with admin.cluster.cdc.system_originated():
        return _carried_out(admin, options["statement"], None, options["timestamp"])


async def _preload(admin: Admin, request: ApiRequest, _: tuple[str, ...]) -> Any:
    """Fill a log with generated rows, one such request after the other."""
    async with admin.preloading:
        return await preload(admin.cluster.engine, admin.cluster.cdc, request.body)


ROUTES: Final[tuple[tuple[str, tuple[str, ...], Endpoint], ...]] = (
    ("GET", ("embedded",), _index),
    ("POST", ("storage_service", "cdc_streams_check_and_repair"), _new_generation),
    ("GET", ("embedded", "streams"), _streams),
    ("POST", ("embedded", "streams", "generation"), _new_generation),
    ("POST", ("embedded", "streams", "*", "*"), _change_tablets),
    ("GET", ("embedded", "ring_delay"), _ring_delay),
    ("POST", ("embedded", "ring_delay"), _ring_delay),
    ("GET", ("embedded", "clock"), _clock),
    ("POST", ("embedded", "clock"), _move_clock),
    ("GET", ("embedded", "nodes"), _nodes),
    ("POST", ("embedded", "nodes"), _add_node),
    ("DELETE", ("embedded", "nodes", "*"), _remove_node),
    ("POST", ("embedded", "nodes", "*", "stop"), _stop_node),
    ("POST", ("embedded", "nodes", "*", "start"), _start_node),
    ("POST", ("embedded", "nodes", "*", "stale"), _stale_node),
    ("POST", ("embedded", "nodes", "*", "fresh"), _fresh_node),
    ("GET", ("embedded", "connections"), _connections),
    ("DELETE", ("embedded", "connections"), _drop_connections),
    ("DELETE", ("embedded", "prepared"), _forget_prepared),
    ("GET", ("embedded", "faults"), _faults),
    ("POST", ("embedded", "faults"), _add_fault),
    ("DELETE", ("embedded", "faults"), _clear_faults),
    ("DELETE", ("embedded", "faults", "*"), _remove_fault),
    ("GET", ("embedded", "counters"), _counters),
    ("DELETE", ("embedded", "counters"), _reset_counters),
    ("POST", ("embedded", "preload"), _preload),
    ("POST", ("embedded", "cql"), _cql),
    ("POST", ("embedded", "service_delete"), _service_delete),
)
