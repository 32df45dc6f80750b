"""What a published table's columns lack of those that it shall have.

In: the columns that are there, and the wanted ones. Out: those that a table of either format can get while its rows and
its versions stay: new columns, and columns whose user types have got further fields.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def new_columns(there: StructType, wanted: StructType) -> StructType | None:
    """The columns that are to be added, or to get further fields, as they shall be; None where that is not all."""
    old = {field.name: field.dataType for field in there}
    new = {field.name: field.dataType for field in wanted}
    if any(name not in new or not _holds(new[name], kind) for name, kind in old.items()):
        return None
    return StructType(
        [StructField(name, kind) for name, kind in new.items() if name not in old or not _is_same(old[name], kind)]
    )


def other_types(there: StructType, wanted: StructType) -> list[tuple[str, str, str]]:
    """The columns that are of a type there of which not all values are wanted ones, with that and the wanted type."""
    new = {field.name: field.dataType for field in wanted}
    kinds = [(field.name, field.dataType, new[field.name]) for field in there if field.name in new]
    return [(name, old.simpleString(), kind.simpleString()) for name, old, kind in kinds if not _holds(kind, old)]


def _holds(new: DataType, old: DataType) -> bool:
    """Whether all values of an old type are some of the new one, whose further fields are null in them. A map's keys
    are not looked into: Iceberg gives these no fields."""
    if isinstance(new, StructType) and isinstance(old, StructType):
        return new.names[: len(old.names)] == old.names and all(
            _holds(ours.dataType, theirs.dataType) for ours, theirs in zip(new, old)
        )
    if isinstance(new, ArrayType) and isinstance(old, ArrayType):
        return _holds(new.elementType, old.elementType)
    if isinstance(new, MapType) and isinstance(old, MapType):
        return _is_same(new.keyType, old.keyType) and _holds(new.valueType, old.valueType)
    return _is_same(new, old)


def _is_same(new: DataType, old: DataType) -> bool:
    """Whatever either says of nulls, which a format may not note."""
    return bool(new.simpleString() == old.simpleString())
