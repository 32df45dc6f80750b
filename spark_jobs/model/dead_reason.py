"""Why a record is not landed: every reason there is, with what it means.

The SQL that finds bad records, the counters of a batch, what waits for a definition and the table of docs/landing.md
are all made from `DeadReason`, or held equal to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from spark_jobs.model.names import literal


class DeadReason(StrEnum):
    """The text that the column `reason` holds; ``meaning`` is for the documentation."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> DeadReason:
        reason = str.__new__(cls, name)
        reason._value_ = name
        reason.meaning = meaning
        return reason

    EMPTY = "EMPTY", "the value is empty"
    NO_DEFINITION = (
        "NO_DEFINITION",
        "the table was created again, and the schemas topic tells nothing of the new one; landed when it does",
    )
    NOT_UTF8 = "NOT_UTF8", "the value is not UTF-8 text"
    UNKNOWN_SCHEMA = (
        "UNKNOWN_SCHEMA",
        "no Schema Registry has the schema that the record names; landed when one has it",
    )
    CORRUPT = (
        "CORRUPT",
        "not JSON, or a value of the wrong type for its column; landed when a version of the table has that type",
    )
    TRAILING = "TRAILING", "text after the JSON object"
    NULL_ENVELOPE = (
        "NULL_ENVELOPE",
        "the value is null where a record is expected, or `value.converter.schemas.enable` is not the connector's",
    )
    BAD_OP = (
        "BAD_OP",
        "no operation, or one that the connector does not write; or as with NULL_ENVELOPE",
    )
    NO_TS = "NO_TS", "no write time"
    NO_ROW = "NO_ROW", "the record does not identify a row"
    NO_KEY = "NO_KEY", "a column of the row's key is missing; landed when a version of the table has its name"
    UNKNOWN_FIELD = (
        "UNKNOWN_FIELD",
        "a column, or a field of a user type, that is in no known version of the table; landed when a version has it",
    )
    OUT_OF_RANGE = "OUT_OF_RANGE", "a value that the landed type cannot hold"


#: What to look at first where a table's records are refused for such a reason.
HINTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (DeadReason.NULL_ENVELOPE, DeadReason.BAD_OP),
        "is value.converter.schemas.enable of the landing file what the connector's worker has?",
    ),
    DeadReason.NO_DEFINITION: "is schema.topic of the landing file the connector's?",
}
#: Letters that wait for a Schema Registry, which is asked now and then whether it knows more by now.
UNNAMED: Final = (DeadReason.UNKNOWN_SCHEMA,)
#: Letters that wait for a new version of the table, or for these: what is older than them may still be needed.
WAITING: Final = (DeadReason.UNKNOWN_FIELD, *UNNAMED)
#: Letters that are tried again with each new version. Of most of these nobody expects that they ever land.
RETRIED: Final = (*WAITING, DeadReason.NO_DEFINITION, DeadReason.CORRUPT, DeadReason.NO_KEY)
#: Letters of a table that is created again, which a new definition is the first of. No delete of the former one is
#: needed for them.
OF_THE_NEXT_TABLE: Final = (DeadReason.NO_DEFINITION,)


def reason_sql(*cases: tuple[str, DeadReason]) -> str:
    """The first reason whose condition holds; null for a record that is as it should be."""
    return f"CASE {' '.join(f'WHEN {condition} THEN {literal(reason)}' for condition, reason in cases)} END"


def reasons_sql(reasons: Iterable[DeadReason]) -> str:
    """Whether the column `reason` is one of these."""
    listed = ", ".join(map(literal, reasons))
    return f"reason IN ({listed})" if listed else "false"
