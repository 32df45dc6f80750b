"""The paths of Connect's REST API about plugins: this connector alone, its properties, and what is wrong with some.

In: a `Cluster`. Out: routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from connector import __version__
from connector.config import CONNECTOR_CLASS
from connector.http import Answer, Refused, Request, Route
from connector.rest import definitions
from connector.rest.bodies import answer, json_object, properties, texts
from connector.rest.cluster import Cluster


def plugin_routes(cluster: Cluster) -> list[Route]:
    def plugin_list(request: Request) -> Answer:
        return answer(definitions.plugins())

    def plugin_config(request: Request) -> Answer:
        plugin = request.parts["plugin"]
        if not definitions.is_ours(plugin):
            raise Refused(404, f"Unknown plugin {plugin}.")
        for version in request.query.get("version", ())[:1]:
            if version not in ("latest", __version__):
                wanted = f"not found that matches the version range [{version},{version}]"
                raise Refused(400, f"Plugin {CONNECTOR_CLASS} {wanted}, available versions: [{__version__}]")
        return answer(definitions.definitions())

    async def validate(request: Request) -> Answer:
        given = properties(json_object(request))
        _refuse_other_plugins(request.parts["plugin"], given)
        config = texts(given)
        found = await asyncio.to_thread(cluster.problems, config)
        found = [*definitions.nulls(given), *found]
        return answer(definitions.validation(config, found, cluster.step_options))

    return [
        Route("GET", "/connector-plugins", plugin_list),
        Route("GET", "/connector-plugins/{plugin}/config", plugin_config),
        # It changes nothing, but it reads what references name.
        Route("PUT", "/connector-plugins/{plugin}/config/validate", validate, writes=True),
    ]


def _refuse_other_plugins(plugin: str, config: Mapping[str, str | None]) -> None:
    """In Connect's words, what is no configuration of the plugin."""
    given = config.get("connector.class")
    if given is None:
        # Connect hides its own 400 in a 500.
        raise Refused(
            500,
            f"org.apache.kafka.connect.runtime.rest.errors.BadRequestException: {definitions.untyped(config)}",
        )
    if not given.removesuffix("Connector").endswith(plugin.removesuffix("Connector")):
        raise Refused(400, f"Included connector type {given} does not match request type {plugin}")
    if not definitions.is_ours(given):
        unknown = definitions.unknown_class(given)
        raise Refused(500, f"org.apache.kafka.connect.runtime.rest.errors.BadRequestException: {unknown}")
