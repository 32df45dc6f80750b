"""What a table's records look like to Spark's parsers.

In: a ``Layout``. Out: the DDL of one struct that parses every record of the table's two topics (changes and range
deletes), so that a batch is parsed once.
"""

from __future__ import annotations

from connector.values import CqlType, UserType
from spark_jobs.model import Key, Layout, Stored, quoted, recorded_type


def record_type(layout: Layout, with_schemas: bool) -> str:
    """The struct of a record's value. ``with_schemas`` tells how range bounds are written: as a struct, not a list."""
    keys = _key_fields(layout.keys)
    after = [*keys, *(f"{quoted(column.name)}:{_cell_type(layout, stored)}" for column, stored in layout.recorded)]
    fields = [
        "source:struct<ts_us:bigint,ttl:int>",
        f"before:struct<{','.join(keys)}>",
        f"after:struct<{','.join(after)}>",
        "op:string",
    ]
    if layout.clustering:
        values = "array<string>"
        length = ""
        if with_schemas:
            values = f"struct<{','.join(_key_fields(layout.clustering))}>"
            length = "length:int,"
        bound = f"struct<values:{values},{length}inclusive:boolean>"
        partition = ",".join(_key_fields(layout.partition))
        fields += ["kind:string", f"partition:struct<{partition}>", f"start:{bound}", f"end:{bound}"]
    return f"struct<{','.join(fields)}>"


def record_key_type(layout: Layout) -> str:
    """The struct of a record's key: the key columns, bare or, with a schema, inside of a payload."""
    keys = ",".join(_key_fields(layout.keys))
    wrapped = f"payload:struct<{keys}>," if key_is_wrapped(layout) else ""
    return f"struct<{wrapped}{keys}>"


def key_is_wrapped(layout: Layout) -> bool:
    """Whether a record's key may have a payload, rather than a column of that name."""
    return not any(name == "payload" for key in layout.keys for name in key.names)


def known_fields(layout: Layout) -> list[str]:
    """Every field that ``after`` may have in any known version of the table."""
    names = [name for key in layout.keys for name in key.names]
    return names + [column.name for column, _ in layout.recorded]


def _key_fields(keys: tuple[Key, ...]) -> list[str]:
    return [f"{quoted(name)}:{recorded_type(key.recorded or key.type)}" for key in keys for name in key.names]


def _cell_type(layout: Layout, stored: Stored) -> str:
    if layout.images:
        return recorded_type(stored.type)
    if stored.role == "cell":
        return f"struct<value:{recorded_type(stored.type)}>"
    if stored.role == "fields":
        assert isinstance(stored.type, UserType)
        fields = ",".join(
            f"{quoted(name)}:struct<value:{recorded_type(kind)}>" for name, kind in _all_fields(layout, stored)
        )
        return f"struct<value:struct<mode:string,elements:struct<{fields}>>>"
    value = stored.element_value
    shown = "boolean" if value is None else recorded_type(value)
    element = f"struct<key:{recorded_type(stored.element_key)},value:{shown}>"
    return f"struct<value:struct<mode:string,elements:array<{element}>>>"


def _all_fields(layout: Layout, stored: Stored) -> list[tuple[str, CqlType]]:
    """A user type's fields as its newest known version has them."""
    for column, found in layout.recorded:
        if found is stored and isinstance(column.type, UserType):
            return list(column.type.fields)
    return []
