"""``RegexRouter`` and ``TimestampRouter``: another topic, and nothing else.

In: their options. Out: functions from a record to the same record with another topic.
"""

from __future__ import annotations

from connector.java_regex import java_pattern
from smt.connect.declared import Declared
from smt.connect.java_dates import compiled, formatted
from smt.connect.java_replacement import check_regex, check_replacement, replaced
from smt.connect.options import Option, Values
from smt.connect.sides import Apply, Side, with_topic
from smt.errors import OptionProblem, SmtRecordError
from smt.record import Record


def build_regex_router(values: Values, side: Side) -> Apply:
    pattern, replacement = java_pattern(values["regex"]), values["replacement"]

    def apply(record: Record) -> Record:
        topic = replaced(pattern, replacement, record.topic)
        return record if topic is None else with_topic(record, topic)

    return apply


def _check_router(values: Values) -> tuple[OptionProblem, ...]:
    wrong = check_replacement(java_pattern(values["regex"]), values["replacement"])
    return () if wrong is None else (OptionProblem("replacement", wrong, None, values["replacement"]),)


def build_timestamp_router(values: Values, side: Side) -> Apply:
    topic_format, parts = values["topic.format"], compiled(values["timestamp.format"])

    def apply(record: Record) -> Record:
        timestamp = record.place.timestamp if record.place is not None else None
        if timestamp is None:
            raise SmtRecordError("the record has no timestamp")
        topic = topic_format.replace("${topic}", record.topic)
        return with_topic(record, topic.replace("${timestamp}", formatted(parts, timestamp)))

    return apply


def _check_format(text: str) -> None:
    compiled(text)


REGEX_ROUTER = Declared(
    "RegexRouter",
    "Replaces the topic, where an expression matches all of it.",
    (
        Option("regex", "text", "Java's regular expression for the whole topic.", check=check_regex),
        Option("replacement", "text", "The new topic; `$1` and `${name}` are groups of the expression."),
    ),
    build_regex_router,
    check=_check_router,
    routes=True,
)
TIMESTAMP_ROUTER = Declared(
    "TimestampRouter",
    "Makes the topic of the old one and of the record's time.",
    (
        Option(
            "topic.format",
            "text",
            "The new topic, with `${topic}` and `${timestamp}` in it.",
            default="${topic}-${timestamp}",
        ),
        Option("timestamp.format", "text", "A pattern of `SimpleDateFormat`.", default="yyyyMMdd", check=_check_format),
    ),
    build_timestamp_router,
)
