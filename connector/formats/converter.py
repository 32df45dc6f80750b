"""What a converter is: it makes serialisers, one per topic and schema.

Also ``SchemaIds``, what the Avro converter needs of a Schema Registry, and the choice of a converter by
configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from connector.formats.record import Schema

#: From a value to the bytes Kafka gets; None is a null key or value.
Serialize = Callable[[Any], bytes | None]

Side = Literal["key", "value"]


class Converter(Protocol):
    """Called when a table's plan is made, and for each schema that a transform brings up; never per record."""

    def serializer(self, topic: str, schema: Schema | None) -> Serialize: ...


class SchemaIds(Protocol):
    """A Schema Registry, as far as writing needs it. Implementations cache."""

    def id_for(self, subject: str, schema_json: str) -> int:
        """The id of a schema in a subject, registered if need be; its errors are ``CdcError``s that tell what to do."""
        ...
