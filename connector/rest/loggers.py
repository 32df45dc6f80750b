"""The paths of Connect's REST API that show and set levels of loggers, under log4j's names.

In: a `Cluster`. Out: routes.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from connector.http import Answer, Refused, Request, Route
from connector.rest.bodies import answer, json_object, nothing, properties
from connector.rest.cluster import Cluster, LoggerLevel
from connector.rest.parts import asked

ROOT = "root"
_NAMES = {logging.CRITICAL: "FATAL", logging.ERROR: "ERROR", logging.WARNING: "WARN", logging.INFO: "INFO"}
_NAMES |= {logging.DEBUG: "DEBUG", 5: "TRACE"}
_LEVELS = {name: number for number, name in _NAMES.items()} | {"ALL": 1, "OFF": 100}


def logger_routes(cluster: Cluster) -> list[Route]:
    def all_levels(request: Request) -> Answer:
        return answer({name: _document(level) for name, level in cluster.levels().items()})

    def one_level(request: Request) -> Answer:
        name = request.parts["logger"]
        level = cluster.levels().get(ROOT if name.lower() == ROOT else name)
        if level is None:
            raise Refused(404, f"Logger {name} not found.")
        return answer(_document(level))

    async def set_level(request: Request) -> Answer:
        name, level = request.parts["logger"], _wanted(request)
        if [text.lower() for text in request.query.get("scope", ())[:1]] != ["cluster"]:
            return answer(list(cluster.set_level(name, level)))
        await asked(partial(cluster.set_level_everywhere, name, level))
        return nothing(204)

    return [
        Route("GET", "/admin/loggers", all_levels),
        Route("GET", "/admin/loggers/{logger}", one_level),
        Route("PUT", "/admin/loggers/{logger}", set_level, writes=True),
    ]


def _wanted(request: Request) -> int:
    text = properties(json_object(request)).get("level")
    if text is None:
        raise Refused(400, "Desired 'level' parameter was not specified in request.")
    if not text:
        raise Refused(500, "Illegal null or empty Level name.")
    level = _LEVELS.get(text.strip().upper())
    if level is None:
        raise Refused(404, f"invalid log level '{text}'.")
    return level


def _document(level: LoggerLevel) -> dict[str, Any]:
    return {"level": _name(level.level), "last_modified": level.modified_ms}


def _name(level: int) -> str:
    if level > logging.CRITICAL:
        return "OFF"
    return next((named for number, named in _NAMES.items() if level >= number), "ALL")
