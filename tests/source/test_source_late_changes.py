"""Changes that come into streams after their end: delivered in order, or given up; seen in either case, and once."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from connector.source.late_changes import DELIVERED, LOST
from connector.source.settings import ReadingSettings
from tests.servers.patience import until
from tests.servers.stale_node import StaleNode, stale_node
from tests.source.conftest import Following, create_table, logged, reader

SETTINGS = ReadingSettings(confidence_ms=300, window_ms=1000, grace_ms=1500)


@pytest.fixture
def cluster() -> Iterator[StaleNode]:
    with stale_node() as nodes:
        yield nodes


@pytest.mark.scylla
@pytest.mark.parametrize("tablets", [True, False])
def test_changes_after_the_end_of_a_stream_are_delivered_in_order(
    cluster: StaleNode, tablets: bool, caplog: pytest.LogCaptureFixture
) -> None:
    table = create_table(cluster.server, cluster.fresh, "late", tablets)
    for pk in range(20):
        cluster.write(table, pk, 0)
    following = Following(reader(cluster.server, table, settings=SETTINGS, follow=True))
    following.start()
    following.opened.wait(90)
    following.until(lambda: logged(cluster.fresh, table))
    cluster.change(table, tablets)
    with caplog.at_level(logging.WARNING, "connector.source.late_changes"):
        for pk in range(20):
            if pk % 4 == 0:
                cluster.write(table, pk, 1)
            cluster.write(table, pk, 2, late=pk % 2 == 0)
        following.until(lambda: logged(cluster.fresh, table))
        until(lambda: sum(following.source.late.found.values()) == 10, 60)
        cluster.hears()
        for pk in range(20):
            cluster.write(table, pk, 3, late=True)
        following.until(lambda: logged(cluster.fresh, table))
    following.finish()
    following.in_order()
    assert set(following.rows.values()) == {1}
    assert {outcome for _, outcome in following.source.late.found} == {DELIVERED}
    assert "into streams that had ended at" in caplog.text
    assert "delivered in the order of its key; a node learnt too late of the new streams" in caplog.text


@pytest.mark.scylla
def test_what_would_break_the_order_of_its_key_is_given_up_and_told(
    cluster: StaleNode, caplog: pytest.LogCaptureFixture
) -> None:
    table = create_table(cluster.server, cluster.fresh, "broken", False)
    cluster.write(table, 1, 0)
    following = Following(reader(cluster.server, table, settings=SETTINGS, follow=True))
    following.start()
    following.opened.wait(90)
    following.until(lambda: logged(cluster.fresh, table))
    cluster.change(table, False)
    with caplog.at_level(logging.WARNING):
        for pk in (1, 2):
            cluster.write(table, pk, 1, late=True)
        cluster.write(table, 1, 2)
        until(lambda: sum(following.source.late.found.values()) == 2, 60)
        # What was found to be delivered is on its way then: all but one of the four have come when it is here.
        until(lambda: sum(following.rows.values()) == 3, 60)
    following.finish()
    following.in_order()
    assert Counter(outcome for _, outcome in following.source.late.found.elements()) == {DELIVERED: 1, LOST: 1}
    missing = logged(cluster.fresh, table) - following.rows
    assert len(missing) == 1 and not following.rows - logged(cluster.fresh, table)
    (stream, at, _), *_ = missing
    assert f"the change at {at} came into stream 0x{stream} after its end" in caplog.text
    assert "ERROR" in [record.levelname for record in caplog.records if "into streams that had ended" in record.message]


@pytest.mark.scylla
def test_a_look_that_is_owed_survives_the_reader(cluster: StaleNode) -> None:
    """Everything up to now was read, and the reader ends before the look: the checkpoint knows of it."""
    table = create_table(cluster.server, cluster.fresh, "owed", True)
    cluster.write(table, 1, 0)
    cluster.change(table, True)
    cluster.write(table, 1, 1, late=True)
    cluster.write(table, 2, 1)
    with reader(cluster.server, table, settings=SETTINGS) as first:
        seen = Counter(batch.time for batch in first)
        checkpoint = first.checkpoint()
    assert sum(seen.values()) == 2 and any("rechecked" in (each["value"] or {}) for each in json.loads(checkpoint))
    following = Following(reader(cluster.server, table, settings=SETTINGS, follow=True, checkpoint=checkpoint))
    following.start()
    until(lambda: sum(following.rows.values()) == 1, 60)
    checkpoint = following.source.checkpoint()
    following.finish()
    checkpoint = following.source.checkpoint()
    cluster.hears()
    cluster.write(table, 3, 1)
    last = Following(reader(cluster.server, table, settings=SETTINGS, follow=True, checkpoint=checkpoint))
    last.start()
    until(lambda: sum(last.rows.values()) >= 1 and last.source.late.looks >= 1, 60)
    last.finish()
    assert not last.rows & following.rows and sum(last.rows.values()) == 1


@pytest.mark.scylla
def test_a_change_of_streams_costs_two_queries_for_each_group(cluster: StaleNode) -> None:
    table = create_table(cluster.server, cluster.fresh, "cheap", True, count=4)
    cluster.write(table, 1, 0)
    following = Following(reader(cluster.server, table, settings=SETTINGS, follow=True))
    following.start()
    following.opened.wait(90)
    following.until(lambda: logged(cluster.fresh, table))
    cluster.server.admin.change_streams(table, replace=True)
    cluster.write(table, 1, 1)
    until(lambda: following.source.late.looks == 8, 60)
    until(lambda: len(json.loads(following.source.checkpoint())) == 1, 60)
    following.finish()
    assert following.source.late.looks == 8
