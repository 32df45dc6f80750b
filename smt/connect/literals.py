"""Texts of a configuration as values: Connect's ``Values.parseString``, by which InsertHeader reads its literal.

In: a text. Out: the value that it means, with its schema: a number, a boolean, a date or time, a list, a map, else the
text itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from smt.connect.java_date_parser import DateParser
from smt.connect.java_dates import compiled
from smt.connect.numbers import BITS, parse_decimal, to_float32, to_float64
from smt.connect.structs import DATE, DECIMAL, TIME, TIMESTAMP, map_of, simple
from smt.record import Schema

Literal = tuple[Schema | None, Any]

_NULL: Final[Literal] = (None, None)
_DELIMITERS: Final = ':,{}[]"'
_WORDS: Final = {"true": True, "false": False}
#: Their years have four digits.
_ANY_CENTURY: Final = datetime(1950, 1, 1, tzinfo=UTC)
#: By the length of a text: what it may be.
_TEMPORAL: Final = {
    10: (simple("int32", optional=False, name=DATE), DateParser(compiled("yyyy-MM-dd"), _ANY_CENTURY)),
    13: (simple("int32", optional=False, name=TIME), DateParser(compiled("HH:mm:ss.SSS'Z'"), _ANY_CENTURY)),
    24: (
        simple("int64", optional=False, name=TIMESTAMP),
        DateParser(compiled("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"), _ANY_CENTURY),
    ),
}
_WIDENING: Final = ("int8", "int16", "int32", "int64", "float", "double")
_DAY_MS: Final = 86_400_000


def parse_literal(text: str) -> Literal:
    """The value of a text."""
    if not text:
        return _string(text)
    return _Parser(text).parse(embedded=False) or _NULL


def _string(text: str) -> Literal:
    return simple("string", optional=False), text


class _NoValue(ValueError):
    """What began as a list or a map is none."""


class _Parser:
    """``at`` is where the next token begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def token(self) -> str:
        """The next token: a delimiter, or what stands before the next delimiter that no backslash precedes."""
        start, escaped = self.at, False
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                escaped = not escaped
            elif character in _DELIMITERS and not escaped:
                if start == self.at:
                    self.at += 1
                break
            else:
                escaped = False
            self.at += 1
        return self.text[start : self.at]

    def more(self) -> bool:
        return self.at < len(self.text)

    def takes(self, expected: str) -> bool:
        """Passes the expected token, and blanks before it, if it is the next one."""
        start = self.at
        found = self.token()
        while not found.strip() and self.more():
            found = self.token()
        if found.strip() == expected:
            return True
        self.at = start
        return False

    def pass_blanks(self) -> None:
        """Blanks that something follows: inside of a list or a map they are no value."""
        start = self.at
        while not self.token().strip() and self.more():
            start = self.at
        self.at = start

    def parse(self, *, embedded: bool) -> Literal | None:
        if not self.more():
            return None
        if embedded:
            if self.takes('"'):
                return self.quoted()
            self.pass_blanks()
        if self._word("null", embedded):
            return None
        for word, value in _WORDS.items():
            if self._word(word, embedded):
                return simple("boolean", optional=False), value
        start = self.at
        try:
            if self.takes("["):
                return self.array()
            if self.takes("{"):
                return self.mapping()
        except _NoValue:
            self.at = start
        token = self.token()
        return _string(token) if not token.strip() else self._next(token.strip(), embedded)

    def _word(self, word: str, embedded: bool) -> bool:
        start = self.at
        if self.takes(word) and (embedded or not self.more()):
            return True
        self.at = start
        return False

    def _next(self, token: str, embedded: bool) -> Literal:
        if token[0].isdigit() and (temporal := self._temporal(token)):
            return temporal
        if token[0].isdigit() or token[0] in "+-":
            try:
                return _number(parse_decimal(token))
            except ValueError:
                pass  # then it is a text
        if embedded:
            raise _NoValue("Failed to parse embedded value")
        return _string(self.text)

    def _temporal(self, token: str) -> Literal | None:
        # The colons of a time are delimiters, so that it may have come in five pieces.
        start = self.at
        rest = []
        for _ in range(4):
            if not self.more():
                break
            rest.append(self.token())
        else:
            if found := _as_temporal(token + self.text[start : self.at]):
                return found
        self.at = start
        return _as_temporal(token)

    def quoted(self) -> Literal:
        content = []
        while self.more() and not self.takes('"'):
            content.append(self.token())
        text = "".join(content)
        return _as_temporal(text) or _string(text)

    def array(self) -> Literal:
        elements: list[Literal | None] = []
        while self.more():
            if self.takes("]"):
                common = _common(elements)
                values = [_aligned(common, each) for each in elements]
                # Without an element that is not null there is no type of elements.
                return {"type": "array", "items": common, "optional": False}, values
            if self.takes(","):
                raise _NoValue("Unable to parse an empty array element")
            elements.append(self.parse(embedded=True))
            start = self.at
            if self.takes("]"):
                self.at = start
            elif not self.takes(","):
                raise _NoValue("Array elements missing ',' delimiter")
        raise _NoValue("Array is missing terminating ']'")

    def mapping(self) -> Literal:
        keys: list[Literal | None] = []
        values: list[Literal | None] = []
        while self.more():
            if self.takes("}"):
                key, value = _common(keys), _common(values)
                if key is None:
                    value = None
                pairs = [(_aligned(key, one), _aligned(value, two)) for one, two in zip(keys, values, strict=True)]
                schema = {"type": "map", "keys": key, "values": value, "optional": False}
                return schema, map_of(schema, pairs)
            if self.takes(","):
                raise _NoValue("Unable to parse a map entry with no key or value")
            one = self.parse(embedded=True)
            if one is None or one[1] is None or not self.takes(":"):
                raise _NoValue("Map entry is missing its key or ':'")
            keys.append(one)
            values.append(self.parse(embedded=True))
            self.takes(",")
        raise _NoValue("Map is missing terminating '}'")


def _as_temporal(text: str) -> Literal | None:
    text = text.replace("\\:", ":")
    if len(text) not in _TEMPORAL:
        return None
    schema, parser = _TEMPORAL[len(text)]
    try:
        milliseconds = parser.milliseconds(text)
    except ValueError:
        return None
    return schema, milliseconds // _DAY_MS if schema["name"] == DATE else milliseconds


def _number(number: Decimal) -> Literal:
    whole = number.to_integral_value(ROUND_CEILING)
    if whole == number:
        for type_, bits in BITS.items():
            if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
                return simple(type_, optional=False), int(whole)
    scale = -int(number.as_tuple().exponent)
    single, double = to_float32(number), to_float64(number)
    if abs(single) != float("inf") and scale != 0:
        return simple("float", optional=False), single
    if abs(double) != float("inf") and scale != 0:
        return simple("double", optional=False), double
    schema = {**simple("bytes", optional=False, name=DECIMAL), "parameters": {"scale": str(scale)}}
    sign, digits, _ = number.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    return schema, unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


def _common(found: list[Literal | None]) -> Schema | None:
    """The schema that takes all of them: the widest number; None where there is none."""
    common: Schema | None = None
    for each in found:
        if each is None or each[0] is None:
            continue
        schema = each[0]
        if common is None or common["type"] == schema["type"]:
            common = schema
        elif common["type"] in _WIDENING and schema["type"] in _WIDENING:
            common = max(common, schema, key=lambda one: _WIDENING.index(one["type"]))
        else:
            return None
    return common


def _aligned(schema: Schema | None, literal: Literal | None) -> Any:
    """A number in the width that all elements have. Where elements have a type, null is none of them, and a date or a
    time is no number of another kind."""
    if literal is None:
        if schema is not None:
            raise _NoValue("null beside other elements")
        return None
    value = literal[1]
    if schema is None or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    own = (literal[0] or {}).get("name")
    if own is not None and "name" not in schema:
        raise _NoValue("a date or a time beside numbers")
    if own == DATE and schema.get("name") == TIMESTAMP:
        return value * _DAY_MS
    if schema["type"] == "float":
        return to_float32(value)
    return to_float64(value) if schema["type"] == "double" else value
