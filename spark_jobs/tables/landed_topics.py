"""Whether the topics are still those that a table's positions are of, and hold what comes behind them.

In: the positions and ids of topics that are noted, and what Kafka says of the topics now. Out: ``LandingError`` with
the remedy where records are lost, or in words why the topics do not hold all that the table had. A topic that was
deleted and created again has another id; its records say nothing of what the one before held.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.tables.notes import Known, Offsets

_REMEDY = "land --rebuild {table} lands the table anew"


def check_same_topics(table: TableName, noted: Known | None, positions: Offsets, ids: Mapping[str, str]) -> None:
    """Refuses positions in a topic that is another one by now, also where it has grown past them."""
    if again := _created_again(noted, positions, ids):
        raise LandingError(
            f"{table}: {again} was deleted and created again after records of it landed: what it held before and did "
            f"not land is lost; {_REMEDY.format(table=table)}, and reads from the source what the topic lacks"
        )


def check_positions(
    table: TableName, noted: Known | None, positions: Offsets, begins: Offsets, ends: Offsets, ids: Mapping[str, str]
) -> None:
    """Refuses to land on from positions that do not mean what they meant."""
    check_same_topics(table, noted, positions, ids)
    remedy = _REMEDY.format(table=table)
    for (topic, number), position in sorted(positions.items()):
        place = f"{table}: {topic}, partition {number}"
        if (topic, number) not in ends or position > ends[topic, number]:
            raise LandingError(
                f"{place}: {position} records are landed, but it ends before; was the topic re-created? {remedy}"
            )
        if position < begins[topic, number]:
            lost = begins[topic, number] - position
            raise LandingError(f"{place}: {lost} records expired before they were landed; {remedy}")
    covered = None if noted is None else noted.covered
    if positions or covered is not None:
        _check_unread(table, covered or {}, positions, begins)


def _check_unread(table: TableName, covered: Offsets, positions: Offsets, begins: Offsets) -> None:
    """Refuses what has expired of a partition that nothing was landed of, where rows are there already, landed or read
    by the first backfill. Another one would add rows, and not remove those whose deletes are lost."""
    for (topic, number), begin in sorted(begins.items()):
        lost = begin - covered.get((topic, number), 0)
        if lost > 0 and (topic, number) not in positions:
            after = " after the backfill, and" if covered else ""
            raise LandingError(
                f"{table}: {topic}, partition {number}: {lost} records expired{after} before they were landed; "
                f"{_REMEDY.format(table=table)}"
            )


def lost_by_topics(
    noted: Known | None, positions: Offsets, begins: Offsets, ends: Offsets, ids: Mapping[str, str]
) -> str | None:
    """Why the topics do not hold everything that landed; None if they do."""
    apart = "so the table cannot be rebuilt from its topics alone"
    if noted is not None and noted.rebuilding:
        # Whatever it was then: the positions that would tell it are gone.
        return noted.incomplete or f"a rebuild of it ended early, {apart}"
    if again := _created_again(noted, positions, ids):
        return f"{again} was deleted and created again: what it held before is gone, {apart}"
    for (topic, number), position in sorted(positions.items()):
        if position > ends.get((topic, number), 0):
            return f"{topic}, partition {number} ends before offset {position}, up to which it was landed, {apart}"
    for (topic, number), offset in sorted(begins.items()):
        if offset > 0:
            return f"{topic}, partition {number} begins at offset {offset}: its first records are gone, {apart}"
    # Records that lacked something when they landed lack it still, and their versions are not new to anybody.
    return None if noted is None else noted.incomplete


def _created_again(noted: Known | None, positions: Offsets, ids: Mapping[str, str]) -> str | None:
    """A topic of which something landed and that is another one now. Versions that noted no ids know of none."""
    landed = {topic for (topic, _), position in positions.items() if position > 0}
    before = {} if noted is None else noted.topic_ids
    return next((topic for topic in sorted(landed & ids.keys()) if before.get(topic, ids[topic]) != ids[topic]), None)
