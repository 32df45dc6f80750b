"""Types that ``column.types`` names for columns of which values have landed already.

In: a landed table, what was noted of it and what is to be. Out: ``LandingError`` where a reader's new type cannot hold
what has landed: it would be shown rounded, or nothing of the table could be read. What lands later is looked at as it
is decoded.
"""

from __future__ import annotations

from dataclasses import replace

from connector.errors import LandingError
from connector.table_name import TableName
from spark_jobs.decode import not_fitting
from spark_jobs.functions import register_functions
from spark_jobs.model import quoted
from spark_jobs.tables import Known, LandedTable


def check_fitting(landed: LandedTable, table: TableName, noted: Known | None, known: Known) -> None:
    """Refuses declarations that rows which are there do not fit; a change of them is the only time to look."""
    if noted is None or dict(noted.declared) == dict(known.declared):
        return
    was = {column.name: column.type for column in noted.definitions[-1].columns}
    columns = [
        column
        for column in known.definitions[-1].columns
        if noted.declared.get(column.name) != known.declared.get(column.name) and was.get(column.name) == column.type
    ]
    if not columns:
        return
    # As they are stored: text of decimals, milliseconds of timestamps.
    millis = {column.name: "bigint" for column in columns if column.type.cql() == "timestamp"}
    stored = replace(noted.layout(), declared=millis)
    register_functions(landed.session, known.layout())
    rows = landed.history.text(stored) if noted.history and landed.history.exists() else landed.view_text(stored)
    counts: list[str] = []
    for column in columns:
        found = not_fitting(column.type, quoted(column.name), known.declared.get(column.name))
        counts.append(f"count_if({' OR '.join(found) or 'false'}) AS {quoted(column.name)}")
    counted = landed.session.sql(f"SELECT {', '.join(counts)} FROM ({rows}) AS landed").first()
    assert counted is not None
    said: list[str] = []
    for column in columns:
        if number := counted[column.name]:
            type_ = known.declared.get(column.name, column.type.cql())
            said.append(f"{number:,} landed values of {column.name} cannot be shown as {type_}")
    if said:
        raise LandingError(
            f"{table}: column.types was changed, and {', '.join(said)}; correct it, or land --rebuild {table} lands "
            "the table anew, with dead letters of what does not fit"
        )
