"""FAILED groups are tried again when their time has come, or when somebody asks for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from connector.source.retries import FIRST_LOOK_SECONDS, GivenUp


class Group:
    failure = None


def read(table: str) -> Any:
    return SimpleNamespace(table=table, state=Group())


def test_asking_does_not_wait_for_the_time_to_come() -> None:
    given_up, one, other = GivenUp(), read("ks.a"), read("ks.b")
    for each in (one, other):
        given_up.failed(each, 0.0)
    assert given_up.due(FIRST_LOOK_SECONDS - 1) == []
    given_up.hurry(1.0)
    assert given_up.due(1.0) == [one, other]
    given_up.hurry(2.0)
    assert given_up.due(2.0) == [], "they are being tried already"
