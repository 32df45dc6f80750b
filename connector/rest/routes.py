"""All paths of Connect's REST API; here those that look at connectors.

In: a `Cluster`. Out: routes. Whatever asks a server is asked in another thread than the HTTP server's.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from connector import __version__
from connector.http import JSON, Answer, Handler, Refused, Request, Route
from connector.rest.bodies import answer, header, json_array_or_null, nothing
from connector.rest.cluster import Cluster, ConnectorView
from connector.rest.loggers import logger_routes
from connector.rest.media_types import refuse_foreign_type, type_of_the_answer
from connector.rest.offsets import offset_routes
from connector.rest.parts import asked, found_view, refuse_ambiguous, task_number
from connector.rest.plugins import plugin_routes
from connector.rest.restarts import restart_routes
from connector.rest.writing import writing_routes

#: Whose bodies are read whatever type they say they are.
_BETWEEN_WORKERS = ("/connectors/{connector}/tasks", "/connectors/{connector}/fence")
#: The Kafka whose API this is: tools look at it to know what they may ask.
API_VERSION = "4.1.1"


def rest_routes(cluster: Cluster) -> list[Route]:
    """All paths, for a server of their own or beside others."""

    async def server(request: Request) -> Answer:
        kafka = await asyncio.to_thread(cluster.cluster_id)
        commit = f"scylla-cdc {__version__}"
        return answer({"version": API_VERSION, "commit": commit, "kafka_cluster_id": kafka})

    def listed(request: Request) -> Answer:
        views = cluster.connectors()
        if "expand" not in request.query:
            return answer([view.name for view in views])
        wanted = set(request.query["expand"])
        forms: dict[str, Callable[[ConnectorView], Any]] = {"info": ConnectorView.info, "status": ConnectorView.status}
        shown = {name: form for name, form in forms.items() if name in wanted}
        return answer({view.name: {name: form(view) for name, form in shown.items()} for view in views})

    def of_connector(form: Callable[[ConnectorView], Any], missing: str = "Connector {} not found") -> Handler:
        def handler(request: Request) -> Answer:
            name = request.parts["connector"]
            return answer(form(found_view(cluster, name, missing.format(name))))

        return handler

    def task_status(request: Request) -> Answer:
        name, number = request.parts["connector"], task_number(request)
        missing = f"No status found for task {name}-{number}"
        view = found_view(cluster, name, missing)
        if not 0 <= number < len(view.tasks):
            raise Refused(404, missing)
        return answer(view.task_status(number))

    def topics(request: Request) -> Answer:
        name = request.parts["connector"]
        view = next((view for view in cluster.connectors() if view.name == name), None)
        return answer({name: {"topics": [] if view is None else list(view.topics)}})

    async def forget_topics(request: Request) -> Answer:
        # Whether there is such a connector is not looked at.
        await asked(partial(cluster.forget_topics, request.parts["connector"]))
        return nothing(202)

    async def offsets(request: Request) -> Answer:
        name = request.parts["connector"]
        found_view(cluster, name, f"Connector {name} not found")
        found = await asked(partial(cluster.offsets, name))
        shown = [{"partition": dict(each.partition), "offset": dict(each.offset or {})} for each in found]
        return answer({"offsets": shown})

    connector = "/connectors/{connector}"
    routes = [
        *restart_routes(cluster),
        *writing_routes(cluster),
        *offset_routes(cluster),
        *logger_routes(cluster),
        *plugin_routes(cluster),
        Route("GET", "/", server),
        Route("GET", "/connectors", listed),
        Route("GET", connector, of_connector(ConnectorView.info)),
        Route("GET", f"{connector}/config", of_connector(lambda view: dict(view.config))),
        Route("GET", f"{connector}/status", of_connector(ConnectorView.status, "No status found for connector {}")),
        Route("GET", f"{connector}/tasks", of_connector(ConnectorView.task_configs)),
        Route("POST", f"{connector}/tasks", _task_configs_between_workers, writes=True),
        Route("PUT", f"{connector}/fence", _between_workers, writes=True),
        Route("GET", f"{connector}/tasks/{{task}}/status", task_status),
        Route("GET", f"{connector}/topics", topics),
        Route("PUT", f"{connector}/topics/reset", forget_topics, writes=True),
        Route("GET", f"{connector}/offsets", offsets),
    ]
    return [
        Route(
            each.method,
            each.path,
            _looked_at(cluster, each.handler, each.path in _BETWEEN_WORKERS),
            writes=each.writes,
        )
        for each in routes
    ]


def _between_workers(request: Request) -> Answer:
    raise Refused(400, "Internal request missing required signature")


def _task_configs_between_workers(request: Request) -> Answer:
    json_array_or_null(request)
    return _between_workers(request)


def _looked_at(cluster: Cluster, handler: Handler, any_content: bool) -> Handler:
    """Behind the look at what is asked for, sent and wanted, in this order."""

    async def checked(request: Request) -> Answer:
        refuse_ambiguous(cluster, request.parts)
        if not any_content:
            refuse_foreign_type(header(request, "content-type"))
        kind = type_of_the_answer(header(request, "accept"))
        try:
            given = handler(request)
            answered = await given if inspect.isawaitable(given) else given
        except Refused as no:
            answered = no.answer()
        return replace(answered, kind=kind) if answered.kind == JSON else answered

    return checked
