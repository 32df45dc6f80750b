"""What records of a table are made of, said without making any: for whoever makes them in another way.

In: a plan with its converters. Out: an ``Outline``: which columns stand where, in which language, framed by what; none
where only the plan can make the records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from connector.changes import ColumnPlace, LogLayout
from connector.config import OutputConfig
from connector.formats.advanced import advanced_key, header_names, payload_places
from connector.formats.avro_converter import AvroConverter
from connector.formats.converter import Converter
from connector.formats.json_converter import JsonConverter
from connector.formats.legacy import shown_places
from connector.formats.plan import RecordPlan, rules_of
from connector.formats.record import Schema
from connector.formats.table_schemas import MetadataHeaders, cell_header_places
from connector.values import NativeType, RenderingRules
from smt import Unwrapping

#: Types of keys that have another text in the headers of strict records.
_OTHER_TEXTS = ("timestamp", "date", "blob")


@dataclass(frozen=True, slots=True)
class OutlineSide:
    """Keys or values. ``head`` gives what stands before each of them, and may ask a Schema Registry for it."""

    avro: bool
    head: Callable[[], bytes]
    tail: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """``key`` is None where keys are null. ``version``: the headers of every record with a value.

    ``headers``: the names of those that have a column of the key as text; ``cells``: of those behind all others, that
    have a cell. ``unwrapping``: what a transform makes of envelopes; then ``value`` is of what it leaves, and
    ``deleted`` of the rows of deletes, if those have any.
    """

    layout: LogLayout
    options: OutputConfig
    topic: str
    key: OutlineSide | None
    value: OutlineSide
    key_places: tuple[ColumnPlace, ...]
    before: tuple[ColumnPlace, ...]
    after: tuple[ColumnPlace, ...]
    rules: RenderingRules
    version: MetadataHeaders
    headers: tuple[tuple[str, ColumnPlace], ...] = ()
    cells: tuple[tuple[str, ColumnPlace], ...] = ()
    unwrapping: Unwrapping | None = None
    deleted: OutlineSide | None = None

    @property
    def has_copies(self) -> bool:
        """A transform puts some of what envelopes tell into headers."""
        return self.unwrapping is not None and bool(self.unwrapping.headers or self.unwrapping.of_tombstones)


def outline_of(
    layout: LogLayout,
    options: OutputConfig,
    plan: RecordPlan,
    key_converter: Converter,
    value_converter: Converter,
    version: MetadataHeaders,
    unwrapping: Unwrapping | None = None,
) -> Outline | None:
    """The plan has the topic already that transforms send its records to."""
    headers = () if plan.headers is None else header_names(layout)
    copied = unwrapping is not None and (unwrapping.headers or unwrapping.of_tombstones)
    if (headers or copied) and options.header_converter.kind != "simple":
        return None
    if headers and not _headers_alike(layout, options):
        return None
    value = _side(value_converter, plan.topic, plan.value_schema if unwrapping is None else unwrapping.schema)
    key = None if plan.key_schema is None else _side(key_converter, plan.topic, plan.key_schema)
    if value is None or (key is None and plan.key_schema is not None):
        return None
    deleted = None
    if unwrapping is not None and unwrapping.deleted_schema is not None:
        deleted = _side(value_converter, plan.topic, unwrapping.deleted_schema)
    if options.format == "legacy":
        shown = tuple(shown_places(layout, options))
        keys, before, after = tuple(place for place in shown if place.column.is_key), shown, shown
    else:
        keys = tuple(advanced_key(layout))
        before, after = (
            tuple(payload_places(layout, f"payload-{side}" in options.key_placement)) for side in ("before", "after")
        )
    return Outline(
        layout, options, plan.topic, key, value, keys, before, after, rules_of(options), version, headers,
        cell_header_places(layout), unwrapping, deleted,
    )  # fmt: skip


def _headers_alike(layout: LogLayout, options: OutputConfig) -> bool:
    """Whether texts in headers are those of JSON."""
    types = [place.column.type for place in layout.places if place.column.is_key]
    return not options.strict or all(isinstance(it, NativeType) and it.name not in _OTHER_TEXTS for it in types)


def _side(converter: Converter, topic: str, schema: Schema | None) -> OutlineSide | None:
    if isinstance(converter, JsonConverter) and converter.as_they_are(schema):
        head, tail = converter.frame(schema)
        return OutlineSide(False, lambda: head, tail)
    if isinstance(converter, AvroConverter) and schema is not None and converter.as_they_are(schema):
        return OutlineSide(True, converter.head(topic, schema))
    return None
