"""Connect schemas as Avro schemas, as Confluent's ``AvroData`` makes them.

In: a Connect schema. Out: an Avro schema as plain JSON, with the ``connect.*`` properties by which Connect
consumers get the original back. A named type that comes up again is only named, as Avro demands. Namespaces stand where
Avro's own ``toString`` has them, so that the text, too, is the one that a Java producer registers.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote_plus

from connector.formats.record import Schema
from connector.formats.schemas import DATE, TIMESTAMP

_AVRO_TYPES: Final = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_LOGICAL: Final = {DATE: "date", TIMESTAMP: "timestamp-millis"}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DEFAULT_NAMESPACE: Final = "io.confluent.connect.avro"
_DEFAULT_NAME: Final = "ConnectDefault"


def avro_schema(schema: Schema, connect_meta_data: bool = True, scrub: bool = False) -> Any:
    """The Avro schema of a Connect schema; ``ValueError`` where a name is none of Avro's and not scrubbed."""
    return _Mapping(connect_meta_data, scrub).schema(schema)


def scrubbed(name: str) -> str:
    """A name of a struct or field as ``scrub.invalid.names`` makes it valid, each part between dots by itself.

    >>> scrubbed("eu.3pl.größe")
    'eu.x3pl.gr_C3_B6_C3_9Fe'
    """
    return ".".join(_scrubbed(part) for part in name.split("."))


def _scrubbed(name: str) -> str:
    if not name or _NAME.match(name):
        return name
    # As Java encodes parts of URLs, then with underscores.
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    return re.sub("[^A-Za-z0-9_]", "_", encoded if re.match("[A-Za-z_]", encoded) else f"x{encoded}")


class _Mapping:
    def __init__(self, connect_meta_data: bool, scrub: bool) -> None:
        self.meta_data = connect_meta_data
        self.scrub = scrub
        #: The fields of each named struct.
        self.defined: dict[str, list[Schema]] = {}
        self.namespace = ""

    def schema(self, schema: Schema) -> Any:
        base = self.base(schema)
        if not schema["optional"]:
            return base
        # A union's default is of its first branch.
        return [base, "null"] if "default" in schema else ["null", base]

    def base(self, schema: Schema) -> Any:
        kind = schema["type"]
        properties = self.properties(schema) if self.meta_data else {}
        if kind in _AVRO_TYPES:
            if schema.get("name") in _LOGICAL:
                properties["logicalType"] = _LOGICAL[schema["name"]]
            return {"type": _AVRO_TYPES[kind], **properties} if properties else _AVRO_TYPES[kind]
        if kind == "array":
            return {"type": "array", "items": self.schema(schema["items"]), **properties}
        if kind != "struct":
            raise ValueError(f"a Connect {kind} has no Avro form here")
        return self.record(schema, properties)

    def record(self, schema: Schema, properties: dict[str, Any]) -> Any:
        full_name = schema.get("name") or f"{_DEFAULT_NAMESPACE}.{_DEFAULT_NAME}"
        if self.scrub:
            full_name = scrubbed(full_name)
        namespace, _, name = full_name.rpartition(".")
        known = self.defined.get(full_name)
        if known is not None and known != schema["fields"]:
            raise ValueError(
                f"two different structs have the name {full_name}, and Avro has one definition for a name: use the "
                "JSON converter for this table"
            )
        if known is not None:
            return name if namespace == self.namespace else full_name
        for part in full_name.split("."):
            _check_name(part, full_name)
        self.defined[full_name] = schema["fields"]
        record: dict[str, Any] = {"type": "record", "name": name}
        around, self.namespace = self.namespace, namespace
        if namespace != around:
            record["namespace"] = namespace
        record["fields"] = [self.field(field) for field in schema["fields"]]
        self.namespace = around
        return record | properties

    def field(self, field: Schema) -> dict[str, Any]:
        name = _scrubbed(field["field"]) if self.scrub else field["field"]
        _check_name(name, "a field")
        made = {"name": name, "type": self.schema(field)}
        if "default" in field:
            made["default"] = field["default"]
        elif field["optional"]:
            made["default"] = None
        return made

    @staticmethod
    def properties(schema: Schema) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        if "version" in schema:
            properties["connect.version"] = schema["version"]
        if "parameters" in schema:
            properties["connect.parameters"] = schema["parameters"]
        if "default" in schema:
            properties["connect.default"] = schema["default"]
        if "name" in schema:
            properties["connect.name"] = schema["name"]
        if schema["type"] in ("int8", "int16"):
            properties["connect.type"] = schema["type"]
        return properties


def _check_name(name: str, where: str) -> None:
    if not _NAME.match(name):
        remedy = "set scrub.invalid.names=true, or use the JSON converter for this table"
        raise ValueError(f"Avro does not allow the name {name!r} (of {where}): {remedy}")
