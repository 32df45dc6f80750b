"""Two processes that run one connector by different configurations: who says so, and when."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from connector.rest import ConnectorView, ConnectState, Instance
from connector.worker.unlike import GRACE_SECONDS, Unlike, difference

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
    assert difference(OURS, {**OURS, **theirs}) == said


def test_many_tables_are_counted() -> None:
    many = {**OURS, "scylla.table.names": ",".join(f"ks.t{number}" for number in range(9))}
    assert difference(many, OURS).endswith("nobody reads ks.t0, ks.t1, ks.t2 and 6 more in its slots")


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
