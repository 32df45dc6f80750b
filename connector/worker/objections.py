"""What a configuration asks for and a table does not give: a log, its images, names that a converter takes.

In: a configuration, a table as it was described. Out: problems, with the statement that mends the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connector.config import Configuration
from connector.cql_names import qualified
from connector.errors import Problem
from connector.formats import refused_schemas
from connector.source import DescribedTable

TABLES = "scylla.table.names"


def objections(configuration: Configuration, table: DescribedTable) -> list[Problem]:
    """What a configuration asks for and a table does not give."""
    if (off := without_cdc(table)) is not None:
        return [off]
    return [*_missing_images(configuration, table), *_refused_names(configuration, table)]


def without_cdc(table: DescribedTable) -> Problem | None:
    if table.description.cdc.enabled:
        return None
    how = altered(table, enabled=True)
    return Problem(TABLES, f"table {table.table} does not have CDC enabled", str(table.table), how)


def altered(table: DescribedTable, **options: Any) -> str:
    """The statement that sets these options of a log, and leaves it the others."""
    return f"ALTER TABLE {qualified(*table.table)} WITH cdc = {replace(table.description.cdc, **options).cql}"


def _missing_images(configuration: Configuration, table: DescribedTable) -> list[Problem]:
    output, cdc = configuration.connector.output, table.description.cdc
    missing: dict[str, Any] = {}
    if output.include_before != "none" and cdc.preimage == "false":
        missing["preimage"] = "true"
    if output.include_after != "none" and not cdc.postimage:
        missing["postimage"] = True
    if not missing:
        return []
    text = f"table {table.table} does not log {' and '.join(f'{image}s' for image in missing)}"
    before = "preimage" in missing
    value = output.include_before if before else output.include_after
    return [Problem(f"cdc.include.{'before' if before else 'after'}", text, value, altered(table, **missing))]


def _refused_names(configuration: Configuration, table: DescribedTable) -> list[Problem]:
    """Names of columns that a converter will refuse in every record."""
    refused = refused_schemas(table.description, table.log_columns, configuration.connector.output)
    return [Problem(f"{side}.converter", f"table {table.table}: {problem}") for side, problem in refused]
