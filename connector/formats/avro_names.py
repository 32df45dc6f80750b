"""Names that Avro allows, made of names of tables and columns that it does not.

In: names, and what a converter is told about them: `scrub.invalid.names` and Debezium's two modes of adjustment. Out:
valid names, or the ones given. A name that Avro allows is never changed: those are the Java connector's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_plus

from connector.config import ConverterConfig, NameMode
from connector.formats.record import Schema
from smt import name_adjuster

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
REMEDY: Final = (
    "set scrub.invalid.names=true on the converter, or field.name.adjustment.mode=avro and "
    "schema.name.adjustment.mode=avro, or use the JSON converter for this table"
)


def is_avro_name(name: str) -> bool:
    """Whether Avro takes it for a name without dots."""
    return bool(_NAME.match(name))


@dataclass(frozen=True, slots=True)
class AvroNames:
    """Adjusting comes before scrubbing, as in Java: there it is the connector that adjusts."""

    scrub: bool = False
    fields: NameMode = "none"
    schemas: NameMode = "none"

    @classmethod
    def of(cls, config: ConverterConfig) -> AvroNames:
        return cls(config.scrub_names, config.field_names, config.schema_names)

    def field(self, name: str) -> str:
        return self._valid(name, self.fields)

    def schema(self, name: str) -> str:
        """A name with dots, each part by itself."""
        return ".".join(self._valid(part, self.schemas) for part in name.split("."))

    def adjusted(self, name: str) -> str:
        """What Connect itself calls a schema of that name: scrubbing is the converter's alone."""
        return AvroNames(False, self.fields, self.schemas).schema(name)

    def _valid(self, name: str, mode: NameMode) -> str:
        if not name or is_avro_name(name):
            return name
        if mode != "none":
            name = name_adjuster(mode, fields=True)(name)
        return _scrubbed(name) if self.scrub and not is_avro_name(name) else name


def refused_names(schema: Schema, names: AvroNames) -> list[str]:
    """All names of a schema that Avro does not allow, as they are, each once."""
    return list(dict.fromkeys(_refused(schema, names)))


def _refused(schema: Schema, names: AvroNames) -> Iterator[str]:
    if schema["type"] == "array":
        yield from _refused(schema["items"], names)
    if schema["type"] != "struct":
        return
    yield from (part for part in names.schema(schema.get("name") or "").split(".") if part and not is_avro_name(part))
    for field in schema["fields"]:
        if not is_avro_name(names.field(field["field"])):
            yield field["field"]
        yield from _refused(field, names)


def _scrubbed(name: str) -> str:
    # As Java encodes parts of URLs, then with underscores. (Until 7.5 of Confluent's converter an `x` stood before
    # whatever is no letter; since then before digits alone.)
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    return re.sub("[^A-Za-z0-9_]", "_", f"x{encoded}" if encoded[0].isdigit() else encoded)
