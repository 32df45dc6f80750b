"""Two processes that run one connector by different configurations: who says so, and when."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from connector.rest import ConnectorView, ConnectState, Instance
from connector.worker.unlike import GRACE_SECONDS, Unlike, converters_of, difference
from tests.config.files import loaded

OURS = {"name": "shop", "scylla.table.names": "ks.t, ks.u", "topic.prefix": "shop", "tasks.max": "2"}


def view(config: dict[str, str], state: ConnectState = "RUNNING", name: str = "shop") -> ConnectorView:
    return ConnectorView(name, config, Instance(state, "a:1", "0.1.0"), (), ())


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ({}, ""),
        ({"scylla.table.names": "ks.u,ks.t"}, ""),
        ({"tasks.max": "1", "scylla.local.dc": "b", "scylla.user": "other"}, ""),
        ({"topic.prefix": "other"}, "by another configuration (topic.prefix): each reads its slots by its own"),
        (
            {"value.converter.schemas.enable": "false", "transforms": "a"},
            "by another configuration (transforms, value.converter.schemas.enable): each reads its slots by its own",
        ),
        (
            {"scylla.table.names": "ks.u,ks.v"},
            "by another configuration (scylla.table.names): each reads its slots by its own, "
            "and nobody reads ks.t in its slots",
        ),
        (
            {"scylla.table.names": "ks.t,ks.u,ks.v"},
            "by another configuration (scylla.table.names): each reads its slots by its own",
        ),
    ],
)
def test_what_decides_over_records_is_named(theirs: dict[str, str], said: str) -> None:
    assert difference(view(OURS), view({**OURS, **theirs})) == said


def test_many_tables_are_counted() -> None:
    many = {**OURS, "scylla.table.names": ",".join(f"ks.t{number}" for number in range(9))}
    assert difference(view(many), view(OURS)).endswith("nobody reads ks.t0, ks.t1, ks.t2 and 6 more in its slots")


@pytest.mark.parametrize(
    ("file", "worker", "said"),
    [
        ({}, {"value.converter.schemas.enable": "false"}, "value.converter.schemas.enable"),
        ({}, {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}, "value.converter"),
        ({}, {"key.converter.schemas.enable": "true"}, ""),
        ({"value.converter": "JsonConverter"}, {"value.converter.schemas.enable": "false"}, ""),
    ],
)
def test_converters_of_workers_files_are_compared_as_they_are_in_force(
    file: dict[str, str], worker: dict[str, str], said: str
) -> None:
    """Half of a topic's records would have a schema, if two machines had other workers' files."""
    base = {"key.converter": "JsonConverter", "value.converter": "org.apache.kafka.connect.json.JsonConverter"}

    def of(connector: dict[str, str], worker: dict[str, str]) -> ConnectorView:
        read = loaded(connector, {**base, **worker})
        return replace(view({**OURS, **connector}), converters=converters_of(read.connector.output))

    text = difference(of({}, {}), of(file, worker))
    assert text == (f"by another configuration ({said}): each reads its slots by its own" if said else "")


def test_one_of_a_version_that_told_no_converters_is_compared_by_files_alone() -> None:
    ours = replace(view(OURS), converters={"value.converter": "json"})
    assert difference(ours, view(OURS)) == difference(view(OURS), ours) == ""
    theirs = view({**OURS, "value.converter": "AvroConverter"})
    assert "(value.converter)" in difference(ours, theirs)


def test_what_lasts_is_told_once_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [100.0]
    unlike = Unlike(lambda: now[0])
    own, other = view(OURS), view({**OURS, "topic.prefix": "other"})

    def look(*others: ConnectorView) -> str | None:
        unlike.look([own], [("b:1", others)])
        return unlike.found.get("shop")

    assert look(other) is None, "one hears of a new definition before the other"
    now[0] += GRACE_SECONDS - 1
    assert look(other) is None and look(view(OURS)) is None and look(other) is None
    now[0] += GRACE_SECONDS
    for _ in range(2):
        assert str(look(other)).startswith("process b:1 runs connector shop as well, by another configuration")
    assert look(replace(other, instance=Instance("PAUSED", "b:1", "0.1.0"))) is None, "it reads nothing"
    assert look(view({**OURS, "topic.prefix": "other"}, name="more")) is None
    told = [(each.levelname, each.getMessage().partition(",")[0]) for each in caplog.records]
    assert told == [
        ("WARNING", "process b:1 runs connector shop as well"),
        ("INFO", "connector shop: all processes run it by the same configuration again"),
    ]
    caplog.clear()
    look(other)
    now[0] += GRACE_SECONDS
    assert look(other)
    unlike.look([], [("b:1", [other])])
    assert not unlike.found and "by the same configuration again" not in caplog.text, "it was deleted here"
