"""Java's regular expressions as Python's.

In: an expression as Java spells it. Out: a Python one that matches the same texts, or ``ValueError`` where it is none
or has no counterpart. All expressions are about names of topics: classes of Unicode have their ASCII members.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LETTERS: Final = "a-zA-Z"
#: What stands between the brackets, by the names of classes.
_CLASSES: Final = {
    **dict.fromkeys(("Alpha", "L", "IsL", "IsLetter", "IsAlphabetic", "IsLatin", "javaLetter"), _LETTERS),
    **dict.fromkeys(("Lower", "Ll", "IsLl", "IsLowercase", "javaLowerCase"), "a-z"),
    **dict.fromkeys(("Upper", "Lu", "IsLu", "IsUppercase", "javaUpperCase"), "A-Z"),
    **dict.fromkeys(("Digit", "N", "Nd", "IsN", "IsNd", "IsDigit", "javaDigit"), "0-9"),
    **dict.fromkeys(("Alnum", "javaLetterOrDigit"), f"{_LETTERS}0-9"),
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": r"\ -~",
    "Blank": r"\ \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r"\ \t\n\x0B\f\r",
    "ASCII": r"\x00-\x7F",
    # These two by a letter of their own, which is another class or none in Python.
    "h": r"\ \t\xA0\u1680\u180E\u2000-\u200A\u202F\u205F\u3000",
    "v": r"\n\x0B\f\r\x85\u2028\u2029",
}
_AS_IN_PYTHON: Final = frozenset("dDwWsS")
_ONE_LETTER: Final = frozenset("hHvV")
_REFERENCES: Final = frozenset("123456789")
_PLACES: Final = {"A": r"\A", "G": r"\A", "b": r"\b", "B": r"\B", "z": r"\Z", "Z": r"(?=\n?\Z)"}
_REPEATED_PLACES: Final = frozenset(("^", "$", *_PLACES.values()))
_LINE_BREAK: Final = rf"(?:\r\n|[{_CLASSES['v']}])"
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CODE: Final = re.compile(r"0([0-3]?[0-7]{1,2})|x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_LOW_SURROGATE: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PROPERTY: Final = re.compile(r"[pP](?:\{(\w+)\}|(\w))")
_QUOTED: Final = re.compile(r"Q(.*?)(?:\\E|\Z)", re.DOTALL)
_QUANTIFIER: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})[+?]?")
_GROUP: Final = re.compile(r"\(\?(?:[:=!>]|<[=!])")
_NAMED: Final = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_FLAGS: Final = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?([:)])")
_REFERENCE: Final = re.compile(r"k<([A-Za-z][A-Za-z0-9]*)>")
_COMMENT: Final = re.compile(r"(?:[ \t\n\x0B\f\r]|#[^\n]*)+")


@lru_cache(maxsize=256)
def java_pattern(regex: str) -> re.Pattern[str]:
    """The Python expression; it matches whole texts by ``fullmatch``, as Java does by ``matches``."""
    try:
        # Java's \d, \w and \s mean ASCII.
        return re.compile(_Translation(regex).whole(), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"Invalid regex: {error}") from None


class _Translation:
    """``at`` is where the next part of the expression begins."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.groups = 0
        self.comments = False

    def whole(self) -> str:
        translated = self.alternatives()
        if self.at < len(self.text):
            raise self.wrong("Unmatched closing ')'")
        return translated

    def wrong(self, what: str) -> ValueError:
        return ValueError(f"Invalid regex: {what} near position {self.at}")

    def takes(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def taken(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def next(self) -> str:
        """The character that is next, behind what is a comment; empty at the end."""
        if self.comments:
            self.taken(_COMMENT)
        return self.text[self.at : self.at + 1]

    def alternatives(self) -> str:
        """What stands before the end of a group, or of the expression."""
        parts, comments = [], self.comments
        # A flag counts up to the end of the group, and in Python for a group of its own.
        opened = closed = ""
        while self.next() not in ("", ")"):
            if self.takes("|"):
                parts.append(f"{closed}|{opened}")
            elif (flags := _FLAGS.match(self.text, self.at)) and flags[3] == ")":
                self.at = flags.end()
                more = self.flags(flags)
                parts.append(more)
                opened, closed = opened + more, closed + (")" if more else "")
            else:
                parts.append(self.repeated())
        self.comments = comments
        return "".join(parts) + closed

    def flags(self, found: re.Match[str]) -> str:
        """The beginning of a Python group with these flags; those that mean nothing in ASCII are left out."""
        on, off = found[1], found[2] or ""
        self.comments = (self.comments or "x" in on) and "x" not in off
        on, off = ("".join(dict.fromkeys(flag for flag in flags if flag in "ims")) for flags in (on, off))
        on = "".join(flag for flag in on if flag not in off)
        return f"(?{on}{'-' if off else ''}{off}:" if on or off else ""

    def repeated(self) -> str:
        one = self.one()
        self.next()
        quantifier = self.taken(_QUANTIFIER)
        if quantifier is None:
            return one
        # Java repeats places, too, as those mean it who write `^*` for all that begins somehow.
        return (f"(?:{one})" if one in _REPEATED_PLACES else one) + quantifier[0]

    def one(self) -> str:
        """What a quantifier may follow."""
        character = self.text[self.at]
        if character == "(":
            return self.group()
        if character == "[":
            self.at += 1
            return self.members()
        if character == "\\":
            self.at += 1
            return self.escaped()
        if character in "*+?{":
            raise self.wrong(f"Dangling meta character '{character}'")
        self.at += 1
        return character if character in ".^$" else re.escape(character)

    def group(self) -> str:
        if (named := self.taken(_NAMED)) is not None:
            opening = f"(?P<{named[1]}>"
            self.groups += 1
        elif (special := self.taken(_GROUP)) is not None:
            opening = special[0]
        elif (flags := self.taken(_FLAGS)) is not None:
            comments = self.comments
            opening = self.flags(flags) or "(?:"
            inner = self.closed()
            self.comments = comments
            return opening + inner
        elif self.text.startswith("(?", self.at):
            raise self.wrong("Unknown inline modifier")
        else:
            self.at += 1
            self.groups += 1
            opening = "("
        return opening + self.closed()

    def closed(self) -> str:
        inner = self.alternatives()
        if not self.takes(")"):
            raise self.wrong("Unclosed group")
        return f"{inner})"

    def escaped(self) -> str:
        """What a backslash outside of brackets means."""
        if (quoted := self.taken(_QUOTED)) is not None:
            return re.escape(quoted[1])
        if (named := self.named_class()) is not None:
            members, negated = named
            return f"[{'^' if negated else ''}{members}]"
        if (reference := self.taken(_REFERENCE)) is not None:
            return f"(?P={reference[1]})"
        letter = self.text[self.at : self.at + 1]
        if letter in _PLACES:
            self.at += 1
            return _PLACES[letter]
        if self.takes("R"):
            return _LINE_BREAK
        if letter in _REFERENCES:
            return self.reference()
        return re.escape(self.character())

    def reference(self) -> str:
        """To a group by its number; as many digits belong to it as still name a group."""
        number = 0
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            longer = number * 10 + int(self.text[self.at])
            if number and longer > self.groups:
                break
            number = longer
            self.at += 1
        return rf"(?:\{number})"

    def character(self) -> str:
        """The one that stands behind a backslash."""
        if self.at == len(self.text):
            raise self.wrong("Nothing follows the last backslash")
        if (code := self.taken(_CODE)) is not None:
            octal, short, long, unit = code.groups()
            number = int(octal, 8) if octal else int(short or long or unit, 16)
            if unit and 0xD800 <= number < 0xDC00 and (low := self.taken(_LOW_SURROGATE)) is not None:
                number = 0x10000 + (number - 0xD800 << 10 | int(low[1], 16) - 0xDC00)
            if number > 0x10FFFF:
                raise self.wrong("Hexadecimal codepoint is too big")
            return chr(number)
        letter = self.text[self.at]
        self.at += 1
        if letter == "c" and self.at < len(self.text):
            self.at += 1
            return chr(ord(self.text[self.at - 1]) ^ 64)
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isascii() and letter.isalnum():
            raise self.wrong(f"Illegal or unsupported escape sequence \\{letter}")
        return letter

    def named_class(self) -> tuple[str, bool] | None:
        """What stands between the brackets of a class that has a name, and whether it is all others that are meant."""
        letter = self.text[self.at : self.at + 1]
        if letter in _AS_IN_PYTHON:
            self.at += 1
            return f"\\{letter}", False
        if letter in _ONE_LETTER:
            self.at += 1
            return _CLASSES[letter.lower()], letter.isupper()
        found = self.taken(_PROPERTY)
        if found is None:
            return None
        members = _CLASSES.get(found[1] or found[2])
        if members is None or found[1] in ("h", "v"):
            raise ValueError(f"Invalid regex: the character class \\{found[0]} is not supported")
        return members, letter == "P"

    def members(self) -> str:
        """A class in brackets, whose first one is passed: an expression for one character."""
        negated = self.takes("^")
        # The operands of &&, each a union of characters and of other classes.
        operands = [_Union()]
        while True:
            union = operands[-1]
            if not self.next():
                raise self.wrong("Unclosed character class")
            if (union or len(operands) > 1) and self.takes("]"):
                break
            if self.takes("&&&"):
                raise self.wrong("Bad class syntax")
            if self.takes("&&"):
                operands.append(_Union())
            elif self.takes("["):
                union.classes.append(self.members())
            elif self.takes("\\"):
                self.escaped_member(union)
            else:
                self.at += 1
                self.range_from(self.text[self.at - 1], union)
        operands = [union for union in operands if union]
        if not operands:
            raise self.wrong("Bad class syntax")
        if negated and len(operands) == 1 and not operands[0].classes:
            return f"[^{operands[0].characters}]"
        *others, last = map(str, operands)
        both = "".join(f"(?={other})" for other in others) + last
        if negated:
            return rf"(?:(?!{both})[\s\S])"
        return f"(?:{both})" if others else both

    def escaped_member(self, union: _Union) -> None:
        if (quoted := self.taken(_QUOTED)) is not None:
            union.characters += re.escape(quoted[1])
        elif (named := self.named_class()) is not None:
            members, negated = named
            if negated:
                union.classes.append(f"[^{members}]")
            else:
                union.characters += members
        else:
            self.range_from(self.character(), union)

    def range_from(self, first: str, union: _Union) -> None:
        """A character, or all up to another one."""
        union.characters += re.escape(first)
        if self.text[self.at : self.at + 1] != "-" or self.text[self.at + 1 : self.at + 2] in ("", "[", "]"):
            return
        self.at += 1
        if self.takes("\\"):
            last = self.character()
        else:
            self.at += 1
            last = self.text[self.at - 1]
        if last < first:
            raise self.wrong("Illegal character range")
        union.characters += f"-{re.escape(last)}"


class _Union:
    """``characters`` as they stand between brackets, and whole ``classes`` beside them."""

    def __init__(self) -> None:
        self.characters = ""
        self.classes: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.characters or self.classes)

    def __str__(self) -> str:
        parts = [*([f"[{self.characters}]"] if self.characters else []), *self.classes]
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
