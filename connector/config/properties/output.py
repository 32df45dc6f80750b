"""Declarations: what records look like and where they go."""

from __future__ import annotations

from typing import Literal, assert_never, get_args

from connector.config.properties.kind import BOOLEAN, integer, list_of, matching, one_of
from connector.config.properties.property import Property, Section

OutputFormat = Literal["legacy", "advanced"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
PLACEMENTS = ("kafka-key", "payload-after", "payload-before", "payload-diff", "payload-key", "kafka-headers")
DEFAULT_PLACEMENT = frozenset(("kafka-key", "payload-after", "payload-before"))


def of_deltas(name: OutputFormat) -> bool:
    """Whether a record of the format shows what an operation wrote; otherwise it shows whole rows."""
    match name:
        case "legacy":
            return True
        case "advanced":
            return False
        case _:
            assert_never(name)


_TOPIC_CHARACTERS = r"[A-Za-z0-9._\-]+"

OUTPUT = Section(
    "Records",
    "What the records contain. `docs/compatibility.md` compares them with the Java connector's.",
    (
        Property(
            "topic.prefix",
            matching(
                _TOPIC_CHARACTERS,
                "Topic prefix may only have letters, digits, dots, underscores and hyphens",
                "letters, digits, . _ -",
            ),
            "First part of topic and schema names, and the logical name in `source.name`.",
            required="A value is required",
        ),
        Property(
            "cdc.output.format",
            one_of(*OUTPUT_FORMATS),
            '`legacy`: each column in a cell `{"value": …}`, null means untouched. '
            "`advanced`: plain columns of whole rows, taken from the table's preimages and postimages.",
            default="legacy",
        ),
        Property(
            "cdc.include.before",
            one_of("none", "full", "only-updated"),
            "`advanced` only: what `before` holds. Needs the table's preimage.",
            default="none",
        ),
        Property(
            "cdc.include.after",
            one_of("none", "full", "only-updated"),
            "`advanced` only: what `after` holds. Needs the table's postimage.",
            default="none",
        ),
        Property(
            "cdc.include.primary-key.placement",
            list_of(
                *PLACEMENTS,
                problem=lambda item: (
                    f"Invalid cdc.include.primary-key.placement location: '{item}'. "
                    f"Valid values are: {', '.join(PLACEMENTS)}"
                ),
            ),
            "`advanced` only: where to write the primary key. `payload-diff` is accepted without effect.",
            default=DEFAULT_PLACEMENT,
            default_text="kafka-key, payload-after, payload-before",
        ),
        Property(
            "cdc.include.primary-key.payload-key-name",
            matching(r"[^\x00-\x1f\ud800-\udfff]+", "Must be a name", "key"),
            "Name of the envelope's member that `payload-key` adds.",
            default="key",
        ),
        Property(
            "experimental.preimages.enabled",
            BOOLEAN,
            "`legacy` only: `before` is filled from the table's preimage.",
            default=False,
        ),
        Property(
            "tombstones.on.delete",
            BOOLEAN,
            "After each delete, a record with the same key and a null value.",
            default=True,
        ),
        Property(
            "skipped.operations",
            list_of("c", "u", "d", "r", "t", "none"),
            "Operations that get no record.",
            default=frozenset("t"),
            default_text="t",
        ),
        Property(
            "cdc.include.collections",
            one_of("none", "delta"),
            "`legacy` only: `delta` adds columns of collection, tuple and user types, as deltas of the write. "
            "`none` leaves them out, as the Java connector does.",
            default="none",
            ours=True,
        ),
        Property(
            "cdc.include.metadata",
            BOOLEAN,
            "Adds stream, time, batch number, operation code and ttl of the log row to `source`, and the headers "
            "`scylla.table.id` and `scylla.schema.version`: which version of the table the record was made by.",
            default=False,
            ours=True,
        ),
        Property(
            "cdc.range.deletes",
            one_of("skip", "topic"),
            "`topic` writes range and partition deletes to `<data topic>.range-deletes`; `skip` counts them.",
            default="skip",
            ours=True,
        ),
        Property(
            "scylla.compatibility",
            one_of("default", "strict"),
            "`strict` disables every deviation from the Java connector in well-formed records.",
            default="default",
            ours=True,
        ),
        Property(
            "scylla.schema.topic",
            matching(_TOPIC_CHARACTERS, "Not a topic name", "letters, digits, . _ -", empty=True),
            "Compacted topic for the descriptions of the tables; empty disables it.",
            default_text="`<topic.prefix>.schemas`",
            ours=True,
        ),
        Property(
            "heartbeat.interval.ms",
            integer(0),
            "Milliseconds between heartbeat records; without it, or with 0, none are written. "
            "Positions never depend on them.",
            default=0,
        ),
        Property(
            "topic.heartbeat.prefix",
            matching(_TOPIC_CHARACTERS, "Not a topic name", "letters, digits, . _ -"),
            "First part of the heartbeat topic, followed by the delimiter and `topic.prefix`.",
            default="__debezium-heartbeat",
        ),
        Property(
            "topic.delimiter",
            matching(_TOPIC_CHARACTERS, "Must be of characters that a topic name may have", "."),
            "Separator between the parts of a topic name.",
            default=".",
        ),
        Property(
            "config.unknown",
            one_of("error", "warn", "ignore"),
            "What a property is that is unknown here, in this file or the worker's. `warn`: an error where it is "
            "nearly a known one, else a warning in the log at start. `error`: an error. `ignore`: a line of the log.",
            default="warn",
            ours=True,
        ),
    ),
)
