"""The paths of Connect's REST API that alter and reset the positions of a connector that is stopped.

In: a `Cluster`. Out: routes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from connector.http import Answer, Refused, Request, Route
from connector.rest.bodies import answer, json_object
from connector.rest.cluster import Cluster, Offset
from connector.rest.parts import asked, found_view


def offset_routes(cluster: Cluster) -> list[Route]:
    async def alter(request: Request) -> Answer:
        body = json_object(request)
        given = body.get("offsets")
        if body.keys() - {"offsets"} or not isinstance(given, list | None):
            raise Refused(500, 'The request\'s body must be {"offsets": […]} and have no other member')
        if not given:
            raise Refused(400, "Partitions / offsets need to be provided for an alter offsets request")
        for each in given:
            _refuse_foreign_form(each)
        return await _changed(cluster, request.parts["connector"], given)

    async def reset(request: Request) -> Answer:
        return await _changed(cluster, request.parts["connector"], None)

    path = "/connectors/{connector}/offsets"
    return [Route("PATCH", path, alter, writes=True), Route("DELETE", path, reset, writes=True)]


async def _changed(cluster: Cluster, name: str, given: list[dict[str, Any]] | None) -> Answer:
    view = found_view(cluster, name, f"Connector {name} not found")
    if view.instance.state != "STOPPED":
        raise Refused(
            400,
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
            f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
        )
    await asked(partial(cluster.alter_offsets, name, None if given is None else [_offset(each) for each in given]))
    done = "reset" if given is None else "altered"
    return answer({"message": f"The offsets for this connector have been {done} successfully"})


_FORM = 'Each of the offsets must be an object, {"partition": {…}, "offset": {…}}'


def _refuse_foreign_form(given: Any) -> None:
    """What Connect's reader refuses, whatever the connector is like. That nothing is named is looked at after that."""
    if not isinstance(given, dict) or not all(
        isinstance(given.get(each), dict | None) for each in ("partition", "offset")
    ):
        raise Refused(500, _FORM)


def _offset(given: dict[str, Any]) -> Offset:
    if given.get("partition") is None:
        raise Refused(500, _FORM)
    return Offset(given["partition"], given.get("offset"))
