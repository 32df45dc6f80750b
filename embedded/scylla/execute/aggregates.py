"""The aggregates: count, min, max, sum, avg.

In: serialised, non-null values one by one. Out: one serialised value; null for min and max of nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DecimalException, Inexact, Rounded
from typing import Any, Final, Protocol

from connector.values import CqlType, NativeType, decode, encode, freeze, native, order_key
from embedded.scylla.errors import InvalidRequest

_NUMBERS: Final = frozenset(("tinyint", "smallint", "int", "bigint", "varint", "float", "double", "decimal", "counter"))
_WIDTHS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64, "counter": 64}
#: A decimal's exponent takes four bytes: exact sums must end somewhere.
_DIGITS: Final = 20_000
_WIDE: Final = Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_EXACT: Final = Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, Rounded])


class Accumulator(Protocol):
    def add(self, raw: bytes) -> None: ...

    def result(self) -> bytes | None: ...


class _Count:
    def __init__(self, type_: CqlType) -> None:
        self._count = 0

    def add(self, raw: bytes) -> None:
        self._count += 1

    def result(self) -> bytes | None:
        return self._count.to_bytes(8, "big")


class _Extreme:
    def __init__(self, type_: CqlType, largest: bool) -> None:
        self._key = order_key(freeze(type_))
        self._largest = largest
        self._best: tuple[Any, bytes] | None = None

    def add(self, raw: bytes) -> None:
        key = self._key(raw)
        if self._best is None or (key > self._best[0] if self._largest else key < self._best[0]):
            self._best = (key, raw)

    def result(self) -> bytes | None:
        return self._best[1] if self._best is not None else None


def _added(total: Decimal, value: Decimal) -> Decimal:
    """The exact sum; the last digit of each is kept, however far apart they are, within reason."""
    try:
        return _EXACT.add(total, value)
    except DecimalException:
        raise InvalidRequest(f"a sum of decimals may not have more than {_DIGITS} digits") from None


class _Sum:
    def __init__(self, type_: CqlType, mean: bool) -> None:
        assert isinstance(type_, NativeType)
        self._type = type_
        self._mean = mean
        self._count = 0
        self._total: Any = Decimal(0) if type_.name == "decimal" else 0

    def add(self, raw: bytes) -> None:
        value = decode(self._type, raw)
        if value is not None:
            self._total = _added(self._total, value) if isinstance(value, Decimal) else self._total + value
            self._count += 1

    def result(self) -> bytes | None:
        total, name = self._total, self._type.name
        if self._mean and self._count:
            if name in ("float", "double"):
                total = total / self._count
            elif name == "decimal":
                exponent = total.as_tuple().exponent
                total = _WIDE.quantize(_WIDE.divide(total, Decimal(self._count)), Decimal((0, (1,), exponent)))
            else:
                total = abs(total) // self._count * (1 if total >= 0 else -1)
        if name in _WIDTHS and not -(1 << _WIDTHS[name] - 1) <= total < 1 << _WIDTHS[name] - 1:
            raise InvalidRequest("Integer overflow in sum. Values should be casted to a wider type.")
        if name in ("float", "double"):
            total = float(total)
        return encode(self._type, total)


AGGREGATES: Final[dict[str, Callable[[CqlType], Accumulator]]] = {
    "count": _Count,
    "min": lambda type_: _Extreme(type_, False),
    "max": lambda type_: _Extreme(type_, True),
    "sum": lambda type_: _Sum(type_, False),
    "avg": lambda type_: _Sum(type_, True),
}


def aggregate_type(name: str, argument: CqlType) -> CqlType:
    """The result's type."""
    if name == "count":
        return native("bigint")
    if name in ("sum", "avg") and not (isinstance(argument, NativeType) and argument.name in _NUMBERS):
        raise InvalidRequest(f"Invalid call to function {name}, none of its type signatures match")
    return argument
