"""``ReplaceField``: leaves fields out, keeps some, renames some."""

from __future__ import annotations

from smt.connect.declared import Declared
from smt.connect.options import WITH_DEFAULTS, Option, Values
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    Plans,
    as_field,
    checked,
    field_named,
    fields_of,
    read,
    require_map,
    require_struct,
    struct_like,
)
from smt.errors import SmtRecordError
from smt.record import Record, Schema


def renames_of(mappings: list[str]) -> dict[str, str]:
    """New names by old ones; as Java splits, colons at the end do not count."""
    found = {}
    for mapping in mappings:
        parts = mapping.rstrip(":").split(":")
        if len(parts) != 2:
            raise ValueError(f"Invalid rename mapping: {mapping}")
        found[parts[0]] = parts[1]
    return found


def _check(mappings: list[str]) -> None:
    renames_of(mappings)


def build(values: Values, side: Side) -> Apply:
    exclude, include = frozenset(values["exclude"]), frozenset(values["include"])
    renames = renames_of(values["renames"])
    originals = {new: old for old, new in renames.items()}
    with_default = values[WITH_DEFAULTS.name]

    def kept(name: str) -> bool:
        return name not in exclude and (not include or name in include)

    def plan(schema: Schema) -> tuple[Schema, list[tuple[Schema, Schema]]]:
        """The new schema, and for each of its fields the one that it is read from."""
        names: list[str] = [field["field"] for field in fields_of(schema) if kept(field["field"])]
        fields = [as_field(field, renames.get(name, name)) for name in names if (field := field_named(schema, name))]
        made = struct_like(schema, fields)
        pairs = []
        for field in fields:
            name: str = field["field"]
            # A field that has another one's new name already is read from there, as Java does it.
            source = field_named(schema, originals.get(name, name))
            if source is None:
                raise SmtRecordError(f"{originals[name]} is not a valid field name")
            pairs.append((field, source))
        return made, pairs

    plans = Plans(plan)

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if value is None:
            return record
        if schema is None:
            row = require_map(value, "ReplaceField")
            return side.put(record, None, {renames.get(name, name): part for name, part in row.items() if kept(name)})
        struct = require_struct(schema, value, "ReplaceField")
        made, pairs = plans.of(schema)
        row = {}
        for field, source in pairs:
            if source["field"] not in struct:
                continue  # left out by untouched.fields=omit
            found = read(struct, source, with_default)
            if found is not None and source["type"] != field["type"]:
                raise SmtRecordError(f"{source['field']} becomes {field['field']}, which is a field of another type")
            row[field["field"]] = checked(field, found)
        return side.put(record, made, row)

    return apply


REPLACE_FIELD = Declared(
    "ReplaceField",
    "Drops or renames fields.",
    (
        Option(
            "exclude",
            "list",
            "Fields to drop; counts more than `include`. Before Connect 4: `blacklist`.",
            default=(),
            aliases=("blacklist",),
        ),
        Option(
            "include",
            "list",
            "Fields to keep, all if empty. Before Connect 4: `whitelist`.",
            default=(),
            aliases=("whitelist",),
        ),
        Option("renames", "list", "`old:new,old:new`.", default=(), check=_check),
        WITH_DEFAULTS,
    ),
    build,
    sided=True,
)
