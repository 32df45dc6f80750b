"""``TimestampConverter``: a field, or the whole key or value, becomes another form of a point in time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from smt.connect.declared import Declared
from smt.connect.java_date_parser import DateParser
from smt.connect.java_dates import compiled, formatted
from smt.connect.numbers import wrapped
from smt.connect.options import WITH_DEFAULTS, Option, Values, one_of
from smt.connect.sides import Apply, Side
from smt.connect.structs import (
    DATE,
    TIME,
    TIMESTAMP,
    Plans,
    as_field,
    checked,
    fields_in,
    fields_of,
    read,
    require_map,
    require_struct,
    simple,
    struct_like,
)
from smt.errors import OptionProblem, SmtRecordError
from smt.record import Record, Schema

_FORMS: Final = ("string", "unix", "Date", "Time", "Timestamp")
_DAY_MS: Final = 86_400_000
#: How many of the unit are a millisecond, or how many milliseconds one is.
_PER_MS: Final = {"microseconds": 1_000, "nanoseconds": 1_000_000}
_LONG: Final = 1 << 63
_LOGICAL: Final = {"Date": DATE, "Time": TIME, "Timestamp": TIMESTAMP}
_NAMED: Final = {logical: form for form, logical in _LOGICAL.items()}


class _Conversion:
    """From any form to the one that is asked for, by way of milliseconds since 1970."""

    def __init__(self, values: Values) -> None:
        self.target, self.precision = values["target.type"], values["unix.precision"]
        pattern = values["format"]
        self.parts = compiled(pattern) if pattern.strip() else None
        # Java's window of a hundred years for two digits begins eighty years before the transform is made.
        now = datetime.now(UTC)
        self.parser = DateParser(self.parts, now.replace(year=now.year - 80)) if self.parts is not None else None
        self.write: Callable[[int], Any] = {
            "string": self.as_string,
            "unix": self.as_unix,
            # Of days that leave 32 bits Connect keeps the lowest.
            "Date": lambda milliseconds: wrapped(milliseconds // _DAY_MS, 32),
            "Time": lambda milliseconds: milliseconds % _DAY_MS,
            "Timestamp": lambda milliseconds: milliseconds,
        }[self.target]

    def schema(self, optional: bool) -> Schema:
        if self.target == "string":
            return simple("string", optional=optional)
        type_ = "int64" if self.target in ("unix", "Timestamp") else "int32"
        return simple(type_, optional=optional, name=_LOGICAL.get(self.target))

    def converted(self, value: Any, form: str) -> Any:
        return None if value is None else self.write(self.milliseconds(value, form))

    def milliseconds(self, value: Any, form: str) -> int:
        if form == "string":
            if self.parser is None:
                raise SmtRecordError("TimestampConverter needs `format` to read a text")
            try:
                return self.parser.milliseconds(value)
            except ValueError as error:
                raise SmtRecordError(f"Could not parse timestamp: {error}") from None
        if form == "Date":
            return int(value) * _DAY_MS
        return self.of_unix(value) if form == "unix" else int(value)

    def of_unix(self, value: int) -> int:
        if self.precision == "seconds":
            return _saturated(value * 1000)
        return _towards_zero(value, _PER_MS.get(self.precision, 1))

    def as_unix(self, milliseconds: int) -> int:
        if self.precision == "seconds":
            return _towards_zero(milliseconds, 1000)
        return _saturated(milliseconds * _PER_MS.get(self.precision, 1))

    def as_string(self, milliseconds: int) -> str:
        assert self.parts is not None
        return formatted(self.parts, milliseconds)


def _towards_zero(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def _saturated(value: int) -> int:
    return max(-_LONG, min(_LONG - 1, value))


def _form_of_schema(schema: Schema) -> str:
    form = _NAMED.get(schema.get("name", ""))
    if form is None:
        form = {"string": "string", "int64": "unix"}.get(schema["type"])
    if form is None:
        raise SmtRecordError(
            f"TimestampConverter takes no {schema['type']}: texts, int64 and Connect's dates and times"
        )
    return form


def _form_of_value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise SmtRecordError(f"TimestampConverter takes no {type(value).__name__}: texts and whole numbers")
    return "string" if isinstance(value, str) else "unix"


def build(values: Values, side: Side) -> Apply:
    name, with_default = values["field"], values[WITH_DEFAULTS.name]
    conversion = _Conversion(values)

    def row_of(schema: Schema, row: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for field in fields_in(schema, row):
            found = read(row, field, with_default)
            if field["field"] == name:
                found = conversion.converted(found, _form_of_schema(field))
            made[field["field"]] = checked(field, found)
        return made

    def new_schema(schema: Schema) -> Schema:
        if not name:
            return conversion.schema(bool(schema.get("optional")))
        fields = [
            as_field(conversion.schema(bool(field.get("optional"))), name) if field["field"] == name else field
            for field in fields_of(schema)
        ]
        default = schema.get("default")
        if default is not None:
            default = row_of(schema, default)
        return struct_like(schema, fields, optional=bool(schema.get("optional")), default=default)

    schemas = Plans(new_schema)

    def apply(record: Record) -> Record:
        schema, value = side.get(record)
        if schema is None:
            if value is None or not name:
                return side.put(record, None, conversion.converted(value, _form_of_value(value)))
            row = dict(require_map(value, "TimestampConverter"))
            row[name] = conversion.converted(row.get(name), _form_of_value(row.get(name)))
            return side.put(record, None, row)
        if not name:
            return side.put(record, schemas.of(schema), conversion.converted(value, _form_of_schema(schema)))
        if value is None:
            return side.put(record, schemas.of(schema), None)
        struct = require_struct(schema, value, "TimestampConverter")
        return side.put(record, schemas.of(schema), row_of(schema, struct))

    return apply


def _check_format(text: str) -> None:
    if text.strip():
        compiled(text)


def _check(values: Values) -> tuple[OptionProblem, ...]:
    if values["target.type"] == "string" and not values["format"].strip():
        text = "TimestampConverter requires format option to be specified when using string timestamps"
        return (OptionProblem("format", text),)
    return ()


TIMESTAMP_CONVERTER = Declared(
    "TimestampConverter",
    "Converts times between texts, Unix time and Connect's dates and times.",
    (
        Option("field", "text", "Name of the field; empty for the whole key or value.", default=""),
        Option(
            "target.type",
            "text",
            ", ".join(f"`{form}`" for form in _FORMS) + ".",
            check=one_of(*_FORMS),
        ),
        Option(
            "format",
            "text",
            "A pattern of `SimpleDateFormat`, by which texts are read and written.",
            default="",
            check=_check_format,
        ),
        Option(
            "unix.precision",
            "text",
            "`seconds`, `milliseconds`, `microseconds` or `nanoseconds`.",
            default="milliseconds",
            check=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
        ),
        WITH_DEFAULTS,
    ),
    build,
    sided=True,
    check=_check,
)
