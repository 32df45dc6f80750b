"""SQL functions backed by Python, for values that SQL cannot make: CQL serialisations and keys that sort.

In: landed types. Out: names of registered functions, and the SQL that calls them.
"""

from __future__ import annotations

from spark_jobs.functions.serialised import order_bytes, tie_bytes
from spark_jobs.functions.serialised_columns import (
    DECIMAL,
    element_rows,
    elements_sql,
    is_blob,
    order_sql,
    register_functions,
    register_tie,
    tie_sql,
)
from spark_jobs.functions.unknown_fields import unknown_inside

__all__ = [
    "DECIMAL",
    "element_rows",
    "elements_sql",
    "is_blob",
    "order_bytes",
    "order_sql",
    "register_functions",
    "register_tie",
    "tie_bytes",
    "tie_sql",
    "unknown_inside",
]
