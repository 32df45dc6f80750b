"""The paths of Connect's REST API that create, change and delete connectors.

In: a `Cluster`. Out: routes. Where files define the connectors they are refused with 409.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast

from connector.errors import Problem
from connector.http import Answer, Handler, Refused, Request, Route
from connector.rest.bodies import answer, json_object, nothing, property_text
from connector.rest.cluster import Cluster, ConnectorView
from connector.rest.definitions import error_text
from connector.rest.parts import asked, found_view

Target = Literal["RUNNING", "PAUSED", "STOPPED"]
_TARGETS = ("RUNNING", "PAUSED", "STOPPED")
_OF_A_CREATION = ("name", "config", "initial_state")


def writing_routes(cluster: Cluster) -> list[Route]:
    """A change is answered when this process acts on it."""
    # One after the other: each looks at what there is, and changes it.
    one_at_a_time = asyncio.Lock()

    def changing(change: Callable[[Request], Answer]) -> Handler:
        async def handler(request: Request) -> Answer:
            name = request.parts.get("connector")
            if not cluster.writable:
                if name is not None:
                    found_view(cluster, name, _missing(name))
                raise Refused(409, _of_files(name))
            async with one_at_a_time:
                return await asked(partial(change, request))

        return handler

    def create(request: Request) -> Answer:
        body = json_object(request)
        unknown = sorted(body.keys() - set(_OF_A_CREATION))
        if unknown:
            raise Refused(500, f"There is no member {unknown[0]}; there are {', '.join(_OF_A_CREATION)}")
        target = _target(body.get("initial_state"))
        name = str(body.get("name") or "").strip()
        config = _named(name, _properties(body.get("config")))
        _refuse_wrong(cluster, config)
        if _view(cluster, name) is not None:
            raise Refused(409, f"Connector {name} already exists")
        if target is not None:
            cluster.direct(name, target)
        cluster.define(name, config)
        return _created(request, cluster, name)

    def put(request: Request) -> Answer:
        name = request.parts["connector"]
        config = _named(name, cluster.with_secrets(name, _properties(json_object(request))))
        _refuse_wrong(cluster, config)
        existed = _view(cluster, name) is not None
        cluster.define(name, config)
        return answer(found_view(cluster, name, _missing(name)).info()) if existed else _created(request, cluster, name)

    def patch(request: Request) -> Answer:
        name = request.parts["connector"]
        found_view(cluster, name, _missing(name))
        changes = json_object(request)
        changed = {**cluster.given(name), **cluster.with_secrets(name, _properties(changes))}
        config = {each: text for each, text in changed.items() if changes.get(each, text) is not None}
        _refuse_wrong(cluster, _named(name, config))
        cluster.define(name, config)
        return answer(found_view(cluster, name, _missing(name)).info())

    def delete(request: Request) -> Answer:
        name = request.parts["connector"]
        found_view(cluster, name, _missing(name))
        cluster.define(name, None)
        return nothing(204)

    path = "/connectors/{connector}"
    return [
        Route("POST", "/connectors", changing(create), writes=True),
        Route("DELETE", path, changing(delete), writes=True),
        Route("PUT", f"{path}/config", changing(put), writes=True),
        Route("PATCH", f"{path}/config", changing(patch), writes=True),
    ]


def _created(request: Request, cluster: Cluster, name: str) -> Answer:
    """With the address where it is; it has no tasks yet, as far as Connect would know."""
    info = {**found_view(cluster, name, _missing(name)).info(), "tasks": []}
    return answer(info, 201, {"Location": request.address(f"/connectors/{name}")})


def _view(cluster: Cluster, name: str) -> ConnectorView | None:
    return next((view for view in cluster.connectors() if view.name == name), None)


def _properties(given: Any) -> dict[str, str]:
    if not isinstance(given, dict):
        raise Refused(500, "The configuration must be a JSON object")
    return {name: text for name, value in given.items() if (text := property_text(name, value)) is not None}


def _named(name: str, config: dict[str, str]) -> dict[str, str]:
    included = config.setdefault("name", name)
    if included != name:
        said = f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        raise Refused(400, said)
    return config


def _target(given: Any) -> Target | None:
    if given is None:
        return None
    target = str(given).upper()
    if target not in _TARGETS:
        raise Refused(500, f"There is no initial_state {given}; there are {', '.join(_TARGETS)}")
    return cast(Target, target)


def _refuse_wrong(cluster: Cluster, config: Mapping[str, str]) -> None:
    """In Connect's words, with all that is wrong."""
    if "connector.class" not in config:
        raise Refused(400, f"Connector config {{name={config['name']}}} contains no connector type")
    problems: Sequence[Problem] = cluster.problems(config)
    if not config["name"]:
        problems = [Problem("name", "String may not be empty"), *problems]
    if problems:
        lines = "\n".join(f"{problem.property}: {error_text(problem)}" for problem in problems)
        raise Refused(
            400,
            f"Connector configuration is invalid and contains the following {len(problems)} error(s):\n{lines}\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`",
        )


def _missing(name: str) -> str:
    return f"Connector {name} not found"


def _of_files(name: str | None) -> str:
    if name is None:
        return "The connectors of this run are defined by its files: give it one more file, and restart it"
    return f"Connector {name} is defined by a file of this run: change the file, and restart the run"
