"""The scalar functions: what they take and give, and how they work on serialised values.

In: a name (and the table, for `token`). Out: the overloads of that name. Names are as in the grammar, in
lower case, in both spellings (`totimestamp`, `to_timestamp`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from connector.timeuuid import millis_of, ticks_of, time_uuid
from connector.values import NATIVE_NAMES, CqlType, native
from embedded.scylla.errors import InvalidRequest
from embedded.scylla.execute.json_values import bytes_from_json_text
from embedded.scylla.execute.run import Run
from embedded.scylla.execute.validation import DAY_NANOSECONDS, checker
from embedded.scylla.schema import Table, partition_key_bytes

Evaluate = Callable[[Run, list[bytes | None]], bytes | None]
_LONG: Final = struct.Struct(">q")
_DAY_MS: Final = 86_400_000
_DATE_ZERO: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class Function:
    """One overload. `evaluate` gets the argument cells."""

    name: str
    arguments: tuple[CqlType, ...]
    returns: CqlType
    evaluate: Evaluate

    def __str__(self) -> str:
        return f"system.{self.name} : ({', '.join(kind.cql() for kind in self.arguments)}) -> {self.returns.cql()}"


def strict(compute: Callable[[bytes], bytes]) -> Evaluate:
    """Of one argument; null, and the empty value, stay null."""

    def evaluate(run: Run, cells: list[bytes | None]) -> bytes | None:
        raw = cells[0]
        return compute(raw) if raw else None

    return evaluate


def _ms(raw: bytes) -> int:
    return int(_LONG.unpack(raw)[0])


def _uuid_ms(raw: bytes) -> int:
    return millis_of(raw)


def _date_ms(raw: bytes) -> int:
    return (int.from_bytes(raw, "big") - _DATE_ZERO) * _DAY_MS


def _date_of_ms(milliseconds: int) -> bytes:
    return (milliseconds // _DAY_MS + _DATE_ZERO).to_bytes(4, "big")


def min_time_uuid(milliseconds: int) -> bytes:
    return time_uuid(milliseconds * 10_000, 0x8080808080808080)


def max_time_uuid(milliseconds: int) -> bytes:
    return time_uuid((milliseconds + 1) * 10_000 - 1, 0x7F7F7F7F7F7F7F7F)


def _random_uuid() -> bytes:
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return bytes(raw)


def _current_ms(run: Run) -> int:
    return millis_of(run.ticker.uuid())


def _from_blob(type_: CqlType, name: str) -> Evaluate:
    check = checker(type_)

    def evaluate(run: Run, cells: list[bytes | None]) -> bytes | None:
        raw = cells[0]
        if raw is None:
            return None
        try:
            return check(raw)
        except ValueError:
            raise InvalidRequest(
                f"In call to function system.{name}, value 0x{raw.hex()} is not a valid binary "
                f"representation for type {type_.cql()}"
            ) from None

    return evaluate


def _same(run: Run, cells: list[bytes | None]) -> bytes | None:
    return cells[0]


def _build() -> dict[str, list[Function]]:
    built: dict[str, list[Function]] = {}

    def add(names: str, arguments: tuple[str, ...], returns: str, evaluate: Evaluate) -> None:
        for name in names.split():
            kinds = tuple(native(argument) for argument in arguments)
            built.setdefault(name, []).append(Function(name, kinds, native(returns), evaluate))

    add("now current_timeuuid currenttimeuuid", (), "timeuuid", lambda run, _: run.ticker.uuid())
    add("uuid", (), "uuid", lambda run, _: _random_uuid())
    add("currenttimestamp current_timestamp", (), "timestamp", lambda run, _: _LONG.pack(_current_ms(run)))
    add("currentdate current_date", (), "date", lambda run, _: _date_of_ms(_current_ms(run)))
    add(
        "currenttime current_time",
        (),
        "time",
        lambda run, _: _LONG.pack(ticks_of(run.ticker.uuid()) * 100 % DAY_NANOSECONDS),
    )
    add("mintimeuuid min_timeuuid", ("timestamp",), "timeuuid", strict(lambda raw: min_time_uuid(_ms(raw))))
    add("maxtimeuuid max_timeuuid", ("timestamp",), "timeuuid", strict(lambda raw: max_time_uuid(_ms(raw))))
    for given, milliseconds in (("timeuuid", _uuid_ms), ("date", _date_ms), ("timestamp", _ms)):

        def packed(raw: bytes, read: Callable[[bytes], int] = milliseconds) -> bytes:
            return _LONG.pack(read(raw))

        def dated(raw: bytes, read: Callable[[bytes], int] = milliseconds) -> bytes:
            return _date_of_ms(read(raw))

        if given != "timestamp":
            add("totimestamp to_timestamp", (given,), "timestamp", strict(packed))
        if given != "date":
            add("todate to_date", (given,), "date", strict(dated))
        add("tounixtimestamp to_unix_timestamp", (given,), "bigint", strict(packed))
    add("dateof", ("timeuuid",), "timestamp", strict(lambda raw: _LONG.pack(_uuid_ms(raw))))
    add("unixtimestampof", ("timeuuid",), "bigint", strict(lambda raw: _LONG.pack(_uuid_ms(raw))))
    for kind in [*NATIVE_NAMES, "varchar"]:
        if kind in ("blob", "counter"):
            continue
        for name in (f"{kind}asblob", f"{kind}_as_blob"):
            add(name, (kind,), "blob", _same)
        for name in (f"blobas{kind}", f"blob_as_{kind}"):
            add(name, ("blob",), kind, _from_blob(native(kind), name))
    return built


_FUNCTIONS: Final = _build()


def _token_function(table: Table) -> Function:
    def evaluate(run: Run, cells: list[bytes | None]) -> bytes | None:
        given = [cell for cell in cells if cell is not None]
        if len(given) != len(cells):
            return None
        return _LONG.pack(table.token_of(partition_key_bytes(tuple(given))))

    return Function("token", tuple(column.type for column in table.partition_key), native("bigint"), evaluate)


def candidates(name: str, table: Table | None) -> list[Function]:
    """All overloads of a name; none when there is no such function."""
    if name == "token" and table is not None:
        return [_token_function(table)]
    return _FUNCTIONS.get(name.lower(), [])


def from_json_function(type_: CqlType) -> Function:
    """`fromJson` for a receiver of this type."""

    def evaluate(run: Run, cells: list[bytes | None]) -> bytes | None:
        raw = cells[0]
        return None if raw is None else bytes_from_json_text(raw.decode(), type_)

    return Function("fromjson", (native("text"),), type_, evaluate)
