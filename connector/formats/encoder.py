"""Changes to records: the one place where a plan, the transforms and the converters meet.

In: ``Change``s, one after the other. Out: ``Record``s for Kafka. A table's plan is made when its first
change with a new layout comes; after that a record costs its cells and nothing else.
"""

from __future__ import annotations

import logging
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from connector.changes import Change, LogLayout, TableDescription, poison
from connector.config import OutputConfig
from connector.errors import CdcError, ConfigurationError, PoisonRecord, PoisonRow, Problem
from connector.formats.columnwise import columnwise
from connector.formats.converter import Converter, SchemaIds, Serialize, Side
from connector.formats.converters import header_converter, side_converter
from connector.formats.heartbeat import heartbeat_record
from connector.formats.outline import Outline, outline_of
from connector.formats.output_formats import record_format
from connector.formats.plan import RecordPlan
from connector.formats.range_deletes import range_delete_plan
from connector.formats.record import DecodedRecord, Record, RecordKind, Schema
from connector.formats.record_format import Columnwise
from connector.formats.table_schemas import (
    MetadataHeaders,
    cell_header_places,
    cell_headers,
    schema_record,
    version_headers,
)
from connector.formats.transforms import output_chain
from smt import Unwrapping

log = logging.getLogger(__name__)

#: What the shortcut raises at a cell that is not as cells usually are; anything else is a shape it was not made for.
_UNUSUAL = (ValueError, TypeError, OverflowError, KeyError, struct.error)

#: Kafka Connect's words for steps that more than one way of a record takes.
_READ, _KEY, _VALUE = "TASK_POLL", "KEY_CONVERTER", "VALUE_CONVERTER"

#: How many schemas that transforms brought up are remembered before the memory starts anew.
_REMEMBERED_SCHEMAS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """A plan with the serialisers of its topic; ``columnwise`` is their shortcut, where there is one."""

    plan: RecordPlan
    serialize_key: Serialize
    serialize_value: Serialize
    #: Where tombstones go, which transforms may send elsewhere.
    tombstone_topic: str
    columnwise: Columnwise | None = None
    #: Where transforms send what ``columnwise`` makes, and whether they leave other records of deletes, which it does
    #: not make.
    sent_to: str = ""
    unwraps: bool = False
    #: Of every record with a value: which version of which table it was made by.
    version: MetadataHeaders = ()


class Encoder:
    """One per worker. ``encode`` is called for every change; what it leaves out it counts in ``skipped``."""

    def __init__(
        self,
        options: OutputConfig,
        key_ids: SchemaIds | None = None,
        value_ids: SchemaIds | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """``key_ids`` and ``value_ids`` are needed for Avro; ``clock`` gives nanoseconds since 1970."""
        self.options = options
        #: Changes that got no record: (table, "range_delete" | "partition_delete" | "operation_c" | …) → number.
        self.skipped: Counter[tuple[str, str]] = Counter()
        self._clock = clock
        self._key_converter = side_converter(options.key_converter, "key", key_ids)
        self._value_converter = side_converter(options.value_converter, "value", value_ids)
        self._header_bytes = header_converter(options.header_converter)
        self._transform = output_chain(options)
        #: Whether a topic can be looked up once for all records of a table.
        self._routes_only = self._transform is None or self._transform.routes
        #: What the transforms lose, one line each, to be said once at start.
        self.losses = self._transform.losses if self._transform is not None else ()
        self._skipped_operations = options.skipped_operations
        self._plain_kinds = frozenset("cudr") - options.skipped_operations
        self._data_plan = record_format(options.format).plan
        #: What is being done, for what is said of a row where it fails: Kafka Connect's word.
        self._stage = _READ
        self._plans: dict[LogLayout, _Bound] = {}
        self._range_plans: dict[LogLayout, _Bound] = {}
        self._serializers: dict[tuple[str, str, int], tuple[Schema | None, Serialize]] = {}

    def encode(self, change: Change) -> list[Record]:
        """The records of a change, in order; ``PoisonRow`` if it cannot be encoded."""
        kind = change.kind
        if kind == "range" or kind == "partition":
            return self._encode_range(change)
        if kind in self._skipped_operations:
            self.skipped[change.table.full_name, f"operation_{kind}"] += 1
            return []
        bound = self._plans.get(change.batch.layout)
        try:
            if bound is None:
                bound = self._bind(self._plans, change.batch.layout, self._data_plan, shortcut=True)
            plan = bound.plan
            now, self._stage = self._clock(), _READ
            key, value = plan.key(change), plan.value(change, now)
            headers = plan.headers(change) if plan.headers is not None else []
            if self._transform is None or self._routes_only:
                key_bytes, value_bytes = self._both_serialized(bound, key, value)
                self._stage = "HEADER_CONVERTER"
                encoded = [(header[0], self._header_bytes(header)) for header in headers] if headers else []
                records = [
                    Record(plan.topic, key_bytes, value_bytes, [*encoded, *cell_headers(change), *bound.version])
                ]
                if kind == "d" and self.options.tombstones:
                    records.append(Record(bound.tombstone_topic, key_bytes, None, encoded, "tombstone"))
                return records
            data, told = self._decoded(plan, key, value, headers, "data", now), (*cell_headers(change), *bound.version)
            if kind != "d" or not self.options.tombstones:
                return self._converted(data, told)
            tombstone = self._decoded(plan, key, None, headers, "tombstone", now)
            return self._delete(change, data, tombstone, told)
        except (CdcError, MemoryError):
            raise
        except Exception as error:
            # Whatever it is, the row says where: a worker that died of it would die of it again.
            raise _explained(change, error, self._stage) from error

    def _delete(
        self, change: Change, data: DecodedRecord, tombstone: DecodedRecord, told: MetadataHeaders
    ) -> list[Record]:
        """Each is made by itself, as in Java, where many transforms fail at a tombstone and deletes are delivered."""
        made: list[Record] = []
        failed: list[tuple[str, Exception, str]] = []
        if self.options.strict and self._transform is not None:
            self._stage = "TRANSFORMATION"
            tombstone.headers = self._transform.headers_beside(data)
        for name, record, version in (("delete", data, told), ("tombstone", tombstone, ())):
            try:
                done = self._transformed(record)
                made += self._serialized(done, version)
            except (CdcError, MemoryError):
                raise
            except Exception as error:
                failed.append((name, error, self._stage))
        if len(failed) > 1:
            self._stage = failed[0][2]
            raise failed[0][1]
        for name, reason, stage in failed:
            why = f"of its two records the {name} cannot be made: {type(reason).__name__}: {reason}"
            raise PoisonRecord(str(poison(change.batch, change.row, why)), made).at(stage) from reason
        return made

    def encode_alike(self, changes: Sequence[Change]) -> list[list[Record]] | None:
        """As ``encode`` of each change, at a third of the cost; None where each has to be looked at by itself."""
        if not changes or any(change.kind not in self._plain_kinds for change in changes):
            return None
        layout = changes[0].batch.layout
        if any(change.batch.layout is not layout for change in changes):
            return None
        try:
            bound = self._plans.get(layout) or self._bind(self._plans, layout, self._data_plan, shortcut=True)
            if bound.columnwise is None:
                return None
            if not bound.unwraps:
                return self._alike(bound, bound.columnwise, changes)
            # What becomes of deletes, the transforms say of each.
            others = [change for change in changes if change.kind != "d"]
            made = iter(self._alike(bound, bound.columnwise, others))
            return [self.encode(change) if change.kind == "d" else next(made) for change in changes]
        except PoisonRow:
            return None
        except CdcError:
            raise
        except _UNUSUAL:
            return None
        except Exception as error:
            self._without_shortcut(layout, error)
            return None

    def _alike(self, bound: _Bound, columnwise: Columnwise, changes: Sequence[Change]) -> list[list[Record]]:
        """The records of each change. Nobody changes their headers: they share lists where they are alike."""
        if not changes:
            return []
        made, topic, told = columnwise(changes, self._clock()), bound.sent_to, [*bound.version]
        of_key, of_cells = bound.plan.headers, cell_header_places(changes[0].batch.layout)
        texts: list[list[tuple[str, bytes | None]]] = [[]] * len(changes)
        if of_key is not None:
            texts = [[(header[0], self._header_bytes(header)) for header in of_key(change)] for change in changes]
        if of_key is None and not of_cells:
            records = [[Record(topic, key, value, told)] for key, value in made]
        else:
            records = [
                [Record(topic, key, value, [*its, *cell_headers(change), *told])]
                for change, (key, value), its in zip(changes, made, texts, strict=True)
            ]
        if self.options.tombstones:
            for change, its, text in zip(changes, records, texts, strict=True):
                if change.kind == "d":
                    its.append(Record(bound.tombstone_topic, its[0].key, None, text, "tombstone"))
        return records

    def outline(self, layout: LogLayout) -> Outline | None:
        """What the records of a table are made of, for whoever makes them in another way; None where only this can."""
        bound = self._plans.get(layout) or self._bind(self._plans, layout, self._data_plan, shortcut=True)
        if self._routes_only and self.options.tombstones and bound.tombstone_topic != bound.plan.topic:
            return None
        left = self._left(bound.plan)
        if left is None:
            return None
        converters = self._key_converter, self._value_converter
        return outline_of(layout, self.options, left[0], *converters, bound.version, left[1])

    def _left(self, plan: RecordPlan) -> tuple[RecordPlan, Unwrapping | None] | None:
        """A plan with the topic where transforms send its records, and what they unwrap; None: only they can tell."""
        if self._transform is None or self._routes_only:
            return plan, None
        found = None if self.options.strict else self._transform.of_topic(plan.topic)
        if found is None or len(found.changing) > 1:
            return None
        unwrapping = None
        for step in found.changing:
            unwrapping = step.unwraps(plan.value_schema) if step.unwraps is not None else None
            if unwrapping is None:
                return None
        return replace(plan, topic=found.topic), unwrapping

    def _without_shortcut(self, layout: LogLayout, error: Exception) -> None:
        """The plan is the reference: what the shortcut cannot do is slower from now on, and never wrong."""
        log.warning(
            "%s: encoding its records one by one from now on, which is slower: %s: %s",
            layout.description.full_name,
            type(error).__name__,
            error,
        )
        if (bound := self._plans.get(layout)) is not None:
            self._plans[layout] = replace(bound, columnwise=None)

    def _encode_range(self, change: Change) -> list[Record]:
        if self.options.range_deletes == "skip":
            self._skip_several(change)
            return []
        bound = self._range_plans.get(change.batch.layout)
        try:
            if bound is None:
                bound = self._bind(self._range_plans, change.batch.layout, range_delete_plan)
            plan = bound.plan
            now, self._stage = self._clock(), _READ
            key, value = plan.key(change), plan.value(change, now)
            if self._transform is not None and not self._routes_only:
                return self._converted(self._decoded(plan, key, value, [], "range_delete", now), bound.version)
            key_bytes, value_bytes = self._both_serialized(bound, key, value)
            return [Record(plan.topic, key_bytes, value_bytes, [*bound.version], "range_delete")]
        except (CdcError, MemoryError):
            raise
        except Exception as error:
            # Whatever it is, the row says where: a worker that died of it would die of it again.
            raise _explained(change, error, self._stage) from error

    def _skip_several(self, change: Change) -> None:
        table = change.table.full_name
        if not (self.skipped[table, "range_delete"] or self.skipped[table, "partition_delete"]):
            log.warning(
                "%s: skipped a delete of several rows; further ones are skipped and counted "
                "(cdc.range.deletes=topic writes them to a separate topic)",
                table,
            )
        self.skipped[table, "range_delete" if change.kind == "range" else "partition_delete"] += 1

    def heartbeat(self) -> list[Record]:
        """A heartbeat record (or none, where a transform drops it); ``ConfigurationError`` where none can be made."""
        decoded = heartbeat_record(self.options, self._clock() // 1_000_000)
        try:
            return self._converted(decoded)
        except (CdcError, MemoryError):
            raise
        except Exception as error:
            # There is no row to blame, nor one that has to wait for it.
            problem = f"No heartbeat can be made for {decoded.topic}: {type(error).__name__}: {error}"
            hint = "transforms see heartbeats too, unless a predicate (TopicNameMatches) keeps them away"
            raise ConfigurationError([Problem("transforms", problem, suggestion=hint)]) from error

    def schema_record(self, description: TableDescription) -> Record:
        """The record for the schemas topic; transforms and converters leave it alone."""
        return schema_record(description, self.options)

    def _bind(
        self,
        plans: dict[LogLayout, _Bound],
        layout: LogLayout,
        make: Callable[[LogLayout, OutputConfig], RecordPlan],
        shortcut: bool = False,
    ) -> _Bound:
        # A table's older layouts are of no use any more, except while a changed table's pages still mix.
        for known in [known for known in plans if known.description.full_name == layout.description.full_name][:-1]:
            del plans[known]
        self._stage = _READ
        plan = make(layout, self.options)
        tombstone_topic = plan.topic
        if self._transform is not None and self._routes_only:
            self._stage = "TRANSFORMATION"
            tombstone_topic = self._transform.routed(plan.topic, tombstone=True)
            plan = replace(plan, topic=self._transform.routed(plan.topic))
        self._stage = _KEY
        serialize_key = self._key_converter.serializer(plan.topic, plan.key_schema)
        self._stage = _VALUE
        bound = _Bound(
            plan,
            serialize_key,
            self._value_converter.serializer(plan.topic, plan.value_schema),
            tombstone_topic,
            version=version_headers(layout.description, self.options),
        )
        plans[layout] = bound
        return self._with_shortcut(layout, bound) if shortcut else bound

    def _with_shortcut(self, layout: LogLayout, bound: _Bound) -> _Bound:
        try:
            left = self._left(bound.plan)
            if left is None:
                return bound
            (plan, unwrapping), converters = left, (self._key_converter, self._value_converter)
            made = columnwise(layout, self.options, plan, *converters, unwrapping)
        except CdcError:
            raise
        except Exception as error:
            self._without_shortcut(layout, error)
            return self._plans[layout]
        tombstone_topic = bound.tombstone_topic if self._routes_only else plan.topic
        self._plans[layout] = bound = replace(
            bound,
            columnwise=made,
            sent_to=plan.topic,
            tombstone_topic=tombstone_topic,
            unwraps=unwrapping is not None,
        )
        return bound

    def _decoded(
        self, plan: RecordPlan, key: Any, value: Any, headers: list[tuple[str, Any]], kind: RecordKind, now: int
    ) -> DecodedRecord:
        schema = None if value is None else plan.value_schema
        timestamp = None if self.options.strict else now // 1_000_000
        return DecodedRecord(plan.topic, plan.key_schema, key, schema, value, list(headers), kind, timestamp=timestamp)

    def _converted(self, record: DecodedRecord, version: MetadataHeaders = ()) -> list[Record]:
        return self._serialized(self._transformed(record), version)

    def _transformed(self, record: DecodedRecord) -> DecodedRecord | None:
        self._stage = "TRANSFORMATION"
        return record if self._transform is None else self._transform(record)

    def _both_serialized(self, bound: _Bound, key: Any, value: Any) -> tuple[bytes | None, bytes | None]:
        self._stage = _KEY
        key_bytes = bound.serialize_key(key)
        self._stage = _VALUE
        return key_bytes, bound.serialize_value(value)

    def _serialized(self, done: DecodedRecord | None, version: MetadataHeaders = ()) -> list[Record]:
        if done is None:
            return []
        self._stage = _KEY
        key = self._serializer("key", self._key_converter, done.topic, done.key_schema)(done.key)
        self._stage = _VALUE
        value = self._serializer("value", self._value_converter, done.topic, done.value_schema)(done.value)
        self._stage = "HEADER_CONVERTER"
        headers = [*((header[0], self._header_bytes(header)) for header in done.headers), *version]
        return [Record(done.topic, key, value, headers, done.kind, done.partition)]

    def _serializer(self, side: Side, converter: Converter, topic: str, schema: Schema | None) -> Serialize:
        known = self._serializers.get((side, topic, id(schema)))
        if known is not None and known[0] is schema:
            return known[1]
        if len(self._serializers) >= _REMEMBERED_SCHEMAS:
            self._serializers.clear()
        serialize = converter.serializer(topic, schema)
        # Holding the schema keeps its id from being given to another one.
        self._serializers[side, topic, id(schema)] = (schema, serialize)
        return serialize


def _explained(change: Change, error: Exception, stage: str) -> PoisonRow:
    """Decode everything once more, slowly, to name the column that is wrong."""
    try:
        _ = change.key, change.columns, change.before_values, change.after_values
    except PoisonRow as named:
        return named
    return poison(change.batch, change.row, f"{type(error).__name__}: {error}").at(stage)
