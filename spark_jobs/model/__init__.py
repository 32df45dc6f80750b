"""What a landed table is: definitions of the source, landed types, the layout of columns, patches. No Spark session.

In: schema records or CQL files. Out: values and SQL text that every other room builds on.
"""

from __future__ import annotations

from spark_jobs.model.changelog import MARKED_POSITIONS, MARKER_TTL, TTL, changelog_columns, state_columns
from spark_jobs.model.cql_definitions import carried, read_definitions
from spark_jobs.model.dead_reason import HINTS, RETRIED, WAITING, DeadReason, reason_sql, reasons_sql
from spark_jobs.model.definitions import Column, TableDefinition, parse_definition, table_named
from spark_jobs.model.landed_types import (
    adapted,
    as_stored,
    fields_of,
    has_fields,
    order_is_stored,
    order_key,
    out_of_range,
    present,
    present_entries,
    recorded_type,
    stored_type,
    text_value,
    tie_is_stored,
)
from spark_jobs.model.layout import DEAD, DEFINITIONS, POSITIONS, Cell, Elements, Key, Layout, Stored
from spark_jobs.model.moved_keys import TEXTS, WHOLE_NUMBERS, immovable, moved, same_order
from spark_jobs.model.names import greatest, literal, physical, quoted, struct_of
from spark_jobs.model.patches import (
    PARTITION,
    ROW,
    SAME_TIME,
    bucket_of,
    changes_patch,
    element_key,
    end_of,
    ended_change,
    ended_rows,
    identities,
    kept_element_fields,
    key_columns,
    partition_keys,
    state_patch,
    ttl_of,
)
from spark_jobs.model.shape import shape

__all__ = [
    "DEAD",
    "DEFINITIONS",
    "HINTS",
    "MARKED_POSITIONS",
    "MARKER_TTL",
    "PARTITION",
    "POSITIONS",
    "RETRIED",
    "ROW",
    "SAME_TIME",
    "TEXTS",
    "TTL",
    "WAITING",
    "WHOLE_NUMBERS",
    "Cell",
    "Column",
    "DeadReason",
    "Elements",
    "Key",
    "Layout",
    "Stored",
    "TableDefinition",
    "adapted",
    "as_stored",
    "bucket_of",
    "carried",
    "changelog_columns",
    "changes_patch",
    "element_key",
    "end_of",
    "ended_change",
    "ended_rows",
    "fields_of",
    "greatest",
    "has_fields",
    "identities",
    "immovable",
    "kept_element_fields",
    "key_columns",
    "literal",
    "moved",
    "order_is_stored",
    "order_key",
    "out_of_range",
    "parse_definition",
    "partition_keys",
    "physical",
    "present",
    "present_entries",
    "quoted",
    "read_definitions",
    "reason_sql",
    "reasons_sql",
    "recorded_type",
    "same_order",
    "shape",
    "state_columns",
    "state_patch",
    "stored_type",
    "struct_of",
    "table_named",
    "text_value",
    "tie_is_stored",
    "ttl_of",
]
