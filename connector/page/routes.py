"""The paths of the page: its files, which everybody may have, and what it asks for beside the status.

In: `Details`. Out: routes. Whatever asks a server is asked in another thread, and for many who look only once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Protocol

from connector.errors import CdcError
from connector.http import Answer, Handler, Refused, Request, Route, answer_json

KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: Nothing from elsewhere, nothing inline, no text that becomes markup, in nobody's frame.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
# Many may look at the same page: what costs something to find out is good for all of them.
FRESH_SECONDS = 1.5
MOST_LETTERS = 200
LETTERS = 50


class Details(Protocol):
    """What the service knows of a connector beside its status. Each may take a while, and raises ``CdcError``; None:
    there is no such connector."""

    def tasks(self) -> Mapping[str, Sequence[int]]:
        """By connector, the numbers that Connect's API has for the workers of this process. Known at once."""

    def slots(self, connector: str) -> Mapping[str, Any] | None:
        """Who has which slots, in all processes."""

    def dead_letters(self, connector: str, most: int) -> Mapping[str, Any] | None:
        """The newest ones."""

    def streams(self, connector: str, table: str) -> Mapping[str, Any] | None:
        """The groups of streams that are read in this process."""


def page_routes(details: Details) -> list[Route]:
    """The page's files are open: a browser has no token until its user has given the page one."""
    once = Once()

    def access(request: Request) -> Answer:
        numbers = {name: list(tasks) for name, tasks in details.tasks().items()}
        return answer_json({"may_write": request.may_write, "tasks": numbers})

    def told(what: str, call: Callable[[Request], Callable[[], Mapping[str, Any] | None]]) -> Handler:
        async def handler(request: Request) -> Answer:
            name = request.parts["connector"]
            key = (what, name, *(f"{each}={','.join(request.query[each])}" for each in sorted(request.query)))
            try:
                found = await once.answer(key, call(request))
            except CdcError as error:
                raise Refused(503, str(error)) from None
            if found is None:
                raise Refused(404, f"Connector {name} not found")
            return answer_json(found)

        return handler

    connector = "/status/{connector}"
    return [
        *(_file("/ui" if name == "page.html" else f"/ui/{name}", name) for name in _names()),
        Route("GET", "/ui/access", access),
        Route("GET", f"{connector}/slots", told("slots", lambda asked: _slots(details, asked))),
        Route("GET", f"{connector}/dead-letters", told("dead letters", lambda asked: _letters(details, asked))),
        Route("GET", f"{connector}/streams", told("streams", lambda asked: _streams(details, asked))),
    ]


def _slots(details: Details, request: Request) -> Callable[[], Mapping[str, Any] | None]:
    return lambda: details.slots(request.parts["connector"])


def _letters(details: Details, request: Request) -> Callable[[], Mapping[str, Any] | None]:
    given = request.query.get("limit", [str(LETTERS)])[0]
    if not given.isdecimal() or not 0 < int(given[:9]) <= MOST_LETTERS:
        raise Refused(400, f"limit must be a number from 1 to {MOST_LETTERS}")
    return lambda: details.dead_letters(request.parts["connector"], int(given))


def _streams(details: Details, request: Request) -> Callable[[], Mapping[str, Any] | None]:
    table = request.query.get("table", [""])[0]
    if not table:
        raise Refused(400, "table is missing: ?table=ks.t")
    return lambda: details.streams(request.parts["connector"], table)


def _names() -> list[str]:
    return sorted(each.name for each in files(__package__).iterdir() if each.name.rpartition(".")[2] in KINDS)


def _file(path: str, name: str) -> Route:
    content, kind = files(__package__).joinpath(name).read_bytes(), KINDS[name.rpartition(".")[2]]

    def handler(request: Request) -> Answer:
        if request.path == "/ui/":
            # What the page refers to is beside `/ui`, also behind a proxy that knows us by a longer path.
            return Answer(308, "", b"", {"Location": "../ui"})
        return Answer(200, kind, content, HEADERS)

    return Route("GET", path, handler, open=True)


class Once:
    """For all who ask the same at a time one call is made, in another thread; what it finds is good for a moment."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, ...], asyncio.Task[Mapping[str, Any] | None]] = {}
        self._found: dict[tuple[str, ...], tuple[float, Mapping[str, Any] | None]] = {}

    async def answer(
        self, key: tuple[str, ...], call: Callable[[], Mapping[str, Any] | None]
    ) -> Mapping[str, Any] | None:
        self._found = {each: kept for each, kept in self._found.items() if time.monotonic() - kept[0] < FRESH_SECONDS}
        if key in self._found:
            return self._found[key][1]
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(asyncio.to_thread(call))
            task.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(task)

    def _done(self, key: tuple[str, ...], task: asyncio.Task[Mapping[str, Any] | None]) -> None:
        del self._running[key]
        if not task.cancelled() and task.exception() is None:
            self._found[key] = (time.monotonic(), task.result())
