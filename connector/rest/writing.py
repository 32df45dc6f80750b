"""The paths of Connect's REST API that create, change and delete connectors.

In: a `Cluster`. Out: routes. Where files define the connectors they are refused with 409; so is what would not change
one that another run has from a file.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

from connector.http import Answer, Handler, Refused, Request, Route
from connector.rest.bodies import answer, json_object, nothing, properties, property_text, refuse_other_than_json, texts
from connector.rest.cluster import Cluster, ConnectorView
from connector.rest.definitions import error_text, is_ours, nulls, unknown_class, untyped
from connector.rest.parts import asked, found_view

Target = Literal["RUNNING", "PAUSED", "STOPPED"]
_TARGETS = ("RUNNING", "PAUSED", "STOPPED")
# What Java takes away around a name.
_BLANKS = "".join(map(chr, range(33)))
_OF_A_CREATION = ("name", "config", "initial_state")
# What Connect puts before its words for a class that is not found, when it is asked for a change.
_OF_A_CHANGE = "org.apache.kafka.connect.errors.ConnectException: "


def writing_routes(cluster: Cluster) -> list[Route]:
    """A change is answered when this process acts on it."""
    writing = _Writing(cluster)
    # One after the other: each looks at what there is, and changes it.
    one_at_a_time = asyncio.Lock()

    def changing(change: Callable[[Request], Answer]) -> Handler:
        async def handler(request: Request) -> Answer:
            writing.refuse_where_files_rule(request)
            async with one_at_a_time:
                return await asked(partial(change, request))

        return handler

    path = "/connectors/{connector}"
    return [
        Route("POST", "/connectors", changing(writing.create), writes=True),
        Route("DELETE", path, changing(writing.delete), writes=True),
        Route("PUT", f"{path}/config", changing(writing.put), writes=True),
        Route("PATCH", f"{path}/config", changing(writing.patch), writes=True),
    ]


class _Writing:
    """What each path does."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def refuse_where_files_rule(self, request: Request) -> None:
        if self._cluster.writable:
            return
        name = request.parts.get("connector")
        if name is not None:
            found_view(self._cluster, name, _missing(name))
        raise Refused(409, _of_files(name))

    def create(self, request: Request) -> Answer:
        body = json_object(request)
        unknown = sorted(body.keys() - set(_OF_A_CREATION))
        if unknown:
            raise Refused(500, f"There is no member {unknown[0]}; there are {', '.join(_OF_A_CREATION)}")
        target = _target(body.get("initial_state"))
        name = (property_text("name", body.get("name")) or "").strip(_BLANKS)
        config = self._accepted(_named(name, properties(body.get("config"))))
        if self._view(name) is not None:
            # One that was deleted while a process hung is there until that has heard of it.
            unheard = None if self._cluster.given(name) else self._cluster.unheard(name)
            raise Refused(409, f"Connector {name} already exists" + (f": {unheard}" if unheard is not None else ""))
        return self._created(request, name, config, target or "RUNNING")

    def put(self, request: Request) -> Answer:
        name = request.parts["connector"].strip(_BLANKS)
        given = _named(name, properties(json_object(request)))
        config = self._accepted({**given, **self._cluster.with_secrets(name, texts(given))}, _OF_A_CHANGE)
        before = self._view(name)
        return self._created(request, name, config, "RUNNING") if before is None else self._changed(before, config)

    def patch(self, request: Request) -> Answer:
        name = request.parts["connector"]
        # What is sent is read before anybody looks whom it is for.
        refuse_other_than_json(request)
        nothing_sent = request.body.strip() in (b"", b"null")
        changes = {} if nothing_sent and self._view(name) is None else properties(json_object(request))
        before = self._defined(name)
        if "name" in changes and changes["name"] is None:
            raise Refused(400, _invalid(['Missing required configuration "name" which has no default value.']))
        merged = {**self._cluster.given(name), **changes, **self._cluster.with_secrets(name, texts(changes))}
        return self._changed(before, self._accepted(_named(name, texts(merged)), _OF_A_CHANGE))

    def delete(self, request: Request) -> Answer:
        name = request.parts["connector"]
        self._defined(name)
        self._cluster.define(name, None)
        return nothing(204)

    def _view(self, name: str) -> ConnectorView | None:
        return next((view for view in self._cluster.connectors() if view.name == name), None)

    def _defined(self, name: str) -> ConnectorView:
        """By the API, which alone can change it."""
        view = found_view(self._cluster, name, _missing(name))
        if not self._cluster.given(name):
            unheard = self._cluster.unheard(name)
            raise Refused(409, _of_files(name, "another") if unheard is None else f"Connector {name}: {unheard}")
        return view

    def _created(self, request: Request, name: str, config: dict[str, str], target: Target) -> Answer:
        """With the address where it is; it has no tasks yet, as far as Connect would know."""
        # What one of that name was to do that is no more may still stand there.
        self._cluster.direct(name, target)
        self._cluster.define(name, config)
        info = {**found_view(self._cluster, name, _missing(name)).info(), "tasks": []}
        return answer(info, 201, {"Location": request.address(f"/connectors/{name}")})

    def _changed(self, before: ConnectorView, config: dict[str, str]) -> Answer:
        self._cluster.define(before.name, config)
        if before.instance.state == "FAILED":
            # Also with nothing new in it, which nobody acts on: what it failed of may be mended elsewhere.
            self._cluster.restart(before.name, itself=True, tasks=())
        return answer(found_view(self._cluster, before.name, _missing(before.name)).info())

    def _accepted(self, given: Mapping[str, str | None], no_such_class: str = "") -> dict[str, str]:
        """A configuration without faults; else all that is wrong, in Connect's words: ``no_such_class`` stands in
        front of those for a class that is not found."""
        config = texts(given)
        if "connector.class" not in config:
            raise Refused(400, untyped(given))
        problems = self._cluster.problems(config)
        if any(problem.property == "connector.class" for problem in problems) or not is_ours(config["connector.class"]):
            raise Refused(400, no_such_class + unknown_class(config["connector.class"]))
        named = _faults_of_name(config["name"])
        faults = [*named, *(problem.problem for problem in nulls(given))]
        faults += [
            f"{problem.property}: {error_text(problem)}"
            for problem in problems
            if not (named and problem.property == "name")
        ]
        if faults:
            raise Refused(400, _invalid(faults))
        return config


def _named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    included = config.get("name")
    if included is not None and included != name:
        said = f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        raise Refused(400, said)
    return {**config, "name": name}


def _target(given: Any) -> Target | None:
    if given is None:
        return None
    target = str(given).upper()
    if target not in _TARGETS:
        raise Refused(500, f"There is no initial_state {given}; there are {', '.join(_TARGETS)}")
    return cast(Target, target)


def _faults_of_name(name: str) -> list[str]:
    control = [str(ord(letter)) for letter in name if unicodedata.category(letter) == "Cc"]
    if name and not control:
        return []
    said = f"Invalid value {name} for configuration name: String may not"
    if not name:
        return [f"{said} be empty"]
    return [f"{said} contain control sequences but had the following ASCII chars: {', '.join(control)}"]


def _invalid(faults: Sequence[str]) -> str:
    lines = "\n".join(faults)
    return (
        f"Connector configuration is invalid and contains the following {len(faults)} error(s):\n{lines}\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )


def _missing(name: str) -> str:
    return f"Connector {name} not found"


def _of_files(name: str | None, whose: str = "this") -> str:
    if name is None:
        return "The connectors of this run are defined by its files: give it one more file, and restart it"
    return f"Connector {name} is defined by a file of {whose} run: change the file, and restart the run"
