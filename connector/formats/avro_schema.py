"""Connect schemas as Avro schemas, as Confluent's ``AvroData`` makes them.

In: a Connect schema. Out: an Avro schema as plain JSON, with the ``connect.*`` properties by which Connect
consumers get the original back. A named type that comes up again is only named, as Avro demands. Namespaces stand where
Avro's own ``toString`` has them, so that the text, too, is the one that a Java producer registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from connector.formats.avro_names import REMEDY, AvroNames, is_avro_name
from connector.formats.record import Schema
from connector.formats.schemas import DATE, TIME, TIMESTAMP

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
_LOGICAL: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
AS_THEY_ARE: Final = AvroNames()
#: Of the first struct that has no name; the others get a number behind it.
DEFAULT_NAME: Final = "io.confluent.connect.avro.ConnectDefault"
#: Of structs inside a key that get a namespace; columns' own structs have other names, also of a column called so.
_OF_KEYS: Final = "key"


def avro_schema(schema: Schema, connect_meta_data: bool = True, names: AvroNames = AS_THEY_ARE) -> Any:
    """The Avro schema of a Connect schema; ``ValueError`` where a name is none of Avro's and ``names`` leave it."""
    return _Mapping(connect_meta_data, names, Counter(_struct_names(schema))).schema(schema)


class _Mapping:
    def __init__(self, connect_meta_data: bool, names: AvroNames, uses: Counter[str]) -> None:
        self.meta_data = connect_meta_data
        self.names = names
        self.uses = uses
        #: The namespace of the outermost struct.
        self.root = ""
        #: The fields of each named struct.
        self.defined: dict[str, list[Schema]] = {}
        self.nameless: list[list[Schema]] = []
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
        full_name = self.full_name(schema)
        namespace, _, name = full_name.rpartition(".")
        if not self.defined:
            self.root = namespace
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
        _check_twins(schema["fields"], record["fields"])
        self.namespace = around
        return record | properties

    def full_name(self, schema: Schema) -> str:
        """Structs inside a key have no namespace. One that comes up again has to get one: a bare name means, to all but
        Java, a type of the namespace around it. (The Java connector makes no record of such a key.)"""
        name = self.names.schema(schema.get("name") or self.default_name(schema["fields"]))
        if self.root and "." not in name and self.uses[schema["name"]] > 1:
            return f"{self.root}.{_OF_KEYS}.{name}"
        return name

    def default_name(self, fields: list[Schema]) -> str:
        if fields not in self.nameless:
            self.nameless.append(fields)
        number = self.nameless.index(fields) + 1
        return DEFAULT_NAME if number == 1 else f"{DEFAULT_NAME}{number}"

    def field(self, field: Schema) -> dict[str, Any]:
        name = self.names.field(field["field"])
        _check_name(name, "a field")
        made = {"name": name, "type": self.schema(field)}
        if "default" in field:
            made["default"] = field["default"]
        elif field["optional"]:
            made["default"] = None
        return made

    def properties(self, schema: Schema) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        if "version" in schema:
            properties["connect.version"] = schema["version"]
        if "parameters" in schema:
            properties["connect.parameters"] = schema["parameters"]
        if "default" in schema:
            properties["connect.default"] = schema["default"]
        if "name" in schema:
            is_struct = schema["type"] == "struct"
            properties["connect.name"] = self.names.adjusted(schema["name"]) if is_struct else schema["name"]
        if schema["type"] in ("int8", "int16"):
            properties["connect.type"] = schema["type"]
        return properties


def _struct_names(schema: Schema) -> Iterator[str]:
    """The name of each struct that has one, as often as it comes up."""
    if schema["type"] == "struct" and schema.get("name"):
        yield schema["name"]
    for part in (*schema.get("fields", ()), *((schema["items"],) if schema["type"] == "array" else ())):
        yield from _struct_names(part)


def _check_name(name: str, where: str) -> None:
    if not is_avro_name(name):
        raise ValueError(f"Avro does not allow the name {name!r} (of {where}): {REMEDY}")


def _check_twins(given: list[Schema], made: list[dict[str, Any]]) -> None:
    """Names that differed before may be one name afterwards."""
    seen: dict[str, str] = {}
    for field, record in zip(given, made, strict=True):
        twin = seen.setdefault(record["name"], field["field"])
        if twin != field["field"]:
            raise ValueError(
                f"the columns {twin!r} and {field['field']!r} would both be called {record['name']!r} in Avro: use the "
                "JSON converter for this table"
            )
