"""A Kafka consumer whose records come transformed: decoding, transform, nothing else.

    consumer = Consumer({"group.id": "sink", "isolation.level": "read_committed", …})
    consumer.subscribe(["shop.ks.orders"])
    flat = FlatteningConsumer(consumer, build_transform("extract-new-state"))
    for record, message in flat.records():
        store(record.key, record.value)     # value None: the row is gone
        consumer.store_offsets(message=message)

In: a ``confluent_kafka.Consumer`` and how its topics are written. Out: pairs of a ``Record`` and its message.
Offsets are the caller's: a dropped record is passed over, the next one's offset covers it. After an error of a record
``records()`` goes on behind it; after any other (the registry is away) it reads that record again, unless the caller
has sought elsewhere, or the partition is another consumer's by then.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from smt.avro_schema import connect_schema
from smt.errors import SmtError, SmtRecordError
from smt.json_text import JsonTexts, header_value, no_json
from smt.record import Place, Record, Schema
from smt.transform import Transform

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

Decoded = tuple[Schema | None, Any]
Decode = Callable[[bytes | None], Decoded]


class DecodeError(SmtError):
    """A key or value that is not in the form it was said to be in."""


def decode_json(data: bytes | None) -> Decoded:
    """JSON as the JsonConverter writes it: bare, or ``{"schema", "payload"}``."""
    return _json(JsonTexts())(data)


class AvroDecoder:
    """Avro as the AvroConverter writes it. ``schema_text`` gives a schema by its id in the registry:
    ``lambda number: SchemaRegistryClient({"url": …}).get_schema(number).schema_str``. Dates and times are numbers, as
    in JSON: transforms know them by their schema, and not all of CQL's are in Python's calendar."""

    def __init__(self, schema_text: Callable[[int], str]) -> None:
        self._schema_text = schema_text
        self._known: dict[int, tuple[Any, Schema]] = {}

    def __call__(self, data: bytes | None) -> Decoded:
        from fastavro import schemaless_reader

        if data is None:
            return None, None
        if len(data) < 5 or data[0] != 0:
            raise DecodeError("not Avro with a schema's id in front")
        parsed, schema = self._schema(int.from_bytes(data[1:5], "big"))
        try:
            return schema, schemaless_reader(io.BytesIO(data[5:]), parsed, None)
        except MemoryError:
            raise
        except Exception as error:  # fastavro has no root for what bytes can be wrong with
            raise DecodeError(f"not Avro of the schema it names: {type(error).__name__}: {error}") from None

    def _schema(self, number: int) -> tuple[Any, Schema]:
        from fastavro import parse_schema

        if number not in self._known:
            text = self._schema_text(number)
            try:
                schema = json.loads(text)
                self._known[number] = parse_schema(_of_numbers(schema)), connect_schema(schema)
            except MemoryError:
                raise
            except Exception as error:  # nor for what a schema can be wrong with
                why = f"{type(error).__name__}: {error}"
                raise DecodeError(f"schema {number} of the registry is none that can be read: {why}") from None
        return self._known[number]


class FlatteningConsumer:
    """Wraps a consumer; a record that cannot be decoded raises ``DecodeError`` naming topic, partition and offset."""

    def __init__(
        self,
        consumer: Consumer,
        transform: Transform,
        *,
        key: Literal["json"] | Decode = "json",
        value: Literal["json"] | Decode = "json",
    ) -> None:
        self.consumer = consumer
        self._apply = transform.apply
        self._key: Decode = _json(JsonTexts()) if key == "json" else key
        self._value: Decode = _json(JsonTexts()) if value == "json" else value

    def records(self, *, idle_seconds: float | None = None) -> Iterator[tuple[Record, Message]]:
        """Transformed records as they come; ends after ``idle_seconds`` without one (None: never)."""
        while True:
            message = self.consumer.poll(1.0 if idle_seconds is None else idle_seconds)
            if message is None:
                if idle_seconds is not None:
                    return
                continue
            if message.error():
                _raise_unless_end(message.error())
                continue
            try:
                record = self.transform(message)
            except (DecodeError, SmtRecordError):
                raise
            except BaseException:
                self._seek_back_to(message)
                raise
            if record is not None:
                yield record, message

    def _seek_back_to(self, message: Message) -> None:
        """Not kept here: then nobody would poll while it cannot be read, and no seek would lead past it."""
        from confluent_kafka import KafkaException, TopicPartition

        with contextlib.suppress(KafkaException):  # the partition is not ours any more: who has it now reads it
            self.consumer.seek(TopicPartition(message.topic(), message.partition(), message.offset()))

    def transform(self, message: Message) -> Record | None:
        """The record of one message, None where the transform drops it."""
        place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
        try:
            key_schema, key = _decoded("key", self._key, message.key())
            value_schema, value = _decoded("value", self._value, message.value())
            headers = [(name, header_value(part)) for name, part in message.headers() or ()]
            return self._apply(
                Record(message.topic(), key, value, headers, key_schema, value_schema, _place_of(message))
            )
        except DecodeError as error:
            raise DecodeError(f"{place}: {error}") from None
        except SmtRecordError as error:
            raise SmtRecordError(f"{place}: {error}") from None


def _decoded(what: str, decode: Decode, data: bytes | None) -> Decoded:
    try:
        return decode(data)
    except DecodeError as error:
        raise DecodeError(f"its {what}: {error}; `{what}` of FlatteningConsumer says how it is written") from None


def _of_numbers(avro: Any) -> Any:
    """The schema without what makes other things than numbers of numbers."""
    if isinstance(avro, dict):
        return {name: _of_numbers(part) for name, part in avro.items() if name != "logicalType"}
    return [_of_numbers(part) for part in avro] if isinstance(avro, list) else avro


def _place_of(message: Message) -> Place:
    kind, milliseconds = message.timestamp()
    return Place(message.partition(), milliseconds if kind else None, message.offset())


def _json(texts: JsonTexts) -> Decode:
    def decoded(data: bytes | None) -> Decoded:
        if data is None:
            return None, None
        try:
            part = texts.part(data)
        except (ValueError, RecursionError) as error:
            raise DecodeError(no_json(data, error)) from None
        return part.schema, part.payload

    return decoded


def _raise_unless_end(error: Any) -> None:
    from confluent_kafka import KafkaError, KafkaException

    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
