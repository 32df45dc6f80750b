"""Fuzzers of what is sent to Kafka Connect's REST API.

In: a ``random.Random``. Out: nothing; every exception but a refusal is a defect.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from connector.config import Configuration
from connector.delivery import compact_json
from connector.errors import Problem
from connector.formats import step_options
from connector.http import Answer, Refused, Request
from connector.rest import ConnectorView, Instance, Offset, StepOption, Steps, rest_routes
from connector.worker.connect_cluster import starts_of
from tests.config.files import CONNECTOR, loaded, validate
from tests.config.test_config_junk import NAMES, VALUES
from tests.fuzz.spoilt import bytes_of, spoilt


@functools.cache
def _configuration() -> Configuration:
    return loaded()


class _Cluster:
    """As much of a service as the paths ask for: one connector that is stopped."""

    writable = True

    def cluster_id(self) -> str:
        return "cluster"

    def connectors(self) -> Sequence[ConnectorView]:
        instance = Instance("STOPPED", "w", "1")
        return [ConnectorView("orders", {"connector.class": "c"}, instance, (instance,), ("t",))]

    def offsets(self, connector: str) -> Sequence[Offset]:
        return []

    def given(self, connector: str) -> Mapping[str, str]:
        return {name: str(value) for name, value in CONNECTOR.items()}

    def with_secrets(self, connector: str, config: Mapping[str, str]) -> dict[str, str]:
        return dict(config)

    def define(self, connector: str, config: Mapping[str, str] | None) -> None:
        compact_json([connector, config])

    def direct(self, connector: str, target: str) -> None:
        compact_json([connector, target])

    def restart(self, connector: str, *, itself: bool, tasks: Sequence[int]) -> None:
        compact_json([connector, list(tasks)])

    def forget_topics(self, connector: str) -> None:
        compact_json(connector)

    def levels(self) -> Mapping[str, Any]:
        return {}

    def set_level(self, logger: str, level: int) -> Sequence[str]:
        return [logger]

    def set_level_everywhere(self, logger: str, level: int) -> None:
        compact_json([logger, level])

    def alter_offsets(self, connector: str, offsets: Sequence[Offset] | None) -> None:
        starts_of(_configuration(), offsets)

    def step_options(self, what: Steps, class_name: str) -> Sequence[StepOption]:
        return step_options(what, class_name)

    def problems(self, config: Mapping[str, str]) -> Sequence[Problem]:
        return validate(config, {}, {})


@functools.cache
def _api() -> tuple[Callable[[Any], Answer], list[Any]]:
    loop = asyncio.new_event_loop()
    return loop.run_until_complete, [route for route in rest_routes(cast(Any, _Cluster())) if route.method != "GET"]


def rest_bodies(draw: random.Random) -> None:
    """Whatever is sent to Kafka Connect's paths, the answer is one, or a refusal."""
    run, routes = _api()
    route = draw.choice(routes)
    config = {**CONNECTOR, "connector.class": "com.scylladb.cdc.debezium.connector.ScyllaConnector"}
    config |= {draw.choice(NAMES): draw.choice(VALUES) for _ in range(draw.randrange(3))}
    partition = {"keyspace_name": "shop", "table_name": "orders"}
    body = draw.choice(
        [
            {"name": "new", "config": config, "initial_state": draw.choice(["STOPPED", "paused", None])},
            {**config, "name": draw.choice(["orders", "new"])},
            {"offsets": [{"partition": partition, "offset": {"read_to": draw.choice([1, -1, 2**70])}}]},
            {"level": draw.choice(["DEBUG", "x", 5])},
        ]
    )
    raw = bytes_of(draw, body if draw.random() < 0.3 else spoilt(draw, body, 2))
    parts = {"connector": draw.choice(["orders", "new", "é\x00", "\ufffd"]), "task": draw.choice(["0", "²", "-1"])}
    parts |= {"logger": draw.choice(["root", "a\x00", "\ufffd"]), "plugin": "ScyllaConnector"}
    query = {draw.choice(["includeTasks", "onlyFailed", "scope"]): [draw.choice(["true", "cluster", "\x00"])]}
    headers = {"Host": draw.choice(["localhost", "é"]), "Content-Type": "application/json"}
    request = Request(route.method, "/", parts, query, headers, raw)

    async def answered() -> Answer:
        found = route.handler(request)
        return cast(Answer, found if isinstance(found, Answer) else await found)

    try:
        done = run(answered())
    except Refused as refused:
        done = refused.answer()
    assert 200 <= done.status < 600


FUZZERS: dict[str, Callable[[random.Random], None]] = {"rest-bodies": rest_bodies}
