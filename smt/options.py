"""The options of the transforms: parsed and checked all at once.

In: texts as they stand in a configuration. Out: ``ExtractOptions`` or ``FlattenOptions``, or
``SmtOptionError`` with every problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from smt.errors import OptionProblem, SmtOptionError, nearest

DeleteMode = Literal["drop", "tombstone", "rewrite", "none"]
TombstoneMode = Literal["drop", "keep"]

_MODES: dict[str, tuple[DeleteMode, TombstoneMode]] = {
    "drop": ("drop", "drop"),
    "tombstone": ("tombstone", "drop"),
    "rewrite": ("rewrite", "drop"),
    "rewrite-with-tombstone": ("rewrite", "keep"),
    "delete-to-tombstone": ("tombstone", "drop"),
}
_OLD_MODES = ("drop", "none", "rewrite")
_TOP_LEVEL = ("op", "ts_ms", "ts_us", "ts_ns")
_OF_TRANSACTION = ("id", "data_collection_order", "total_order")
#: By the connector's `cdc.output.format`: whether columns stand in cells, which tell untouched from null.
IN_CELLS = {"legacy": True, "advanced": False}
_STRUCTS = ("source", "transaction", "before", "after", "key")


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A field of the envelope to copy: from ``struct`` (None: the envelope itself) as ``name``."""

    struct: str | None
    field: str
    name: str


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """Options of ``ScyllaExtractNewRecordState``, with its defaults."""

    deletes: DeleteMode = "drop"
    tombstones: TombstoneMode = "drop"
    add_fields: tuple[FieldReference, ...] = ()
    add_headers: tuple[FieldReference, ...] = ()
    route_by_field: str | None = None
    drop_fields_header: str | None = None
    drop_fields_from_key: bool = False
    drop_only_optional: bool = True
    null_is_default: bool = True
    unwrap_cells: bool = True
    omit_untouched: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class FlattenOptions:
    """Options of ``ScyllaFlattenColumns``."""

    strict: bool = False


class _Parser:
    """Reads options one by one, remembers what is wrong; ``ignores`` those that resemble none that is known."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...], *, ignores: bool) -> None:
        self.given = {name: str(text) for name, text in given.items()}
        self.problems: list[OptionProblem] = []
        for name in self.given:
            if name not in known:
                close = nearest(name, known)
                if close or not ignores:
                    hint = f"did you mean {close}?" if close else "known: " + ", ".join(known)
                    self.problems.append(OptionProblem(name, "Unknown option", hint))

    def has(self, name: str) -> bool:
        return self.given.get(name, "").strip() != ""

    def text(self, name: str) -> str:
        return self.given.get(name, "").strip()

    def boolean(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        if text in ("", "true", "false"):
            return default if not text else text == "true"
        self.wrong(name, "Must be true or false", "true or false")
        return default

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        text = self.text(name).lower()
        if text in allowed:
            return text
        if text:
            close = nearest(text, allowed)
            self.wrong(name, "Value must be one of " + ", ".join(allowed), f"did you mean {close}?" if close else None)
        return default

    def references(self, name: str, prefix: str) -> tuple[FieldReference, ...]:
        found = []
        for item in (part.strip() for part in self.text(name).split(",")):
            if item:
                reference = self._reference(name, prefix, item)
                if reference:
                    found.append(reference)
        names = [reference.name for reference in found]
        for doubled in sorted({each for each in names if names.count(each) > 1}):
            self.wrong(name, f"Gives the name {doubled} twice", "rename one: field:name")
        return tuple(found)

    def _reference(self, name: str, prefix: str, item: str) -> FieldReference | None:
        path, *renamed = item.split(":")
        parts = path.split(".")
        if len(renamed) > 1 or len(parts) > 2 or not all((*parts, *renamed)):
            self.wrong(name, f"'{item}' is not of the form [struct.]field[:name]", "for example source.ts_ms:ts")
            return None
        field = parts[-1]
        if len(parts) == 2 and parts[0] not in _STRUCTS:
            close = nearest(parts[0], _STRUCTS)
            hint = f"did you mean {close}.{field}?" if close else "one of " + ", ".join(_STRUCTS)
            self.wrong(name, f"The envelope has no struct '{parts[0]}'", hint)
            return None
        new_name = renamed[0] if renamed else "_".join(parts)
        return FieldReference(parts[0] if len(parts) == 2 else _home_of(field), field, prefix + new_name)

    def wrong(self, name: str, problem: str, suggestion: str | None = None) -> None:
        self.problems.append(OptionProblem(name, problem, suggestion, self.given.get(name)))

    def end(self) -> None:
        if self.problems:
            raise SmtOptionError(self.problems)


def _home_of(field: str) -> str | None:
    if field in _TOP_LEVEL:
        return None
    return "transaction" if field in _OF_TRANSACTION else "source"


EXTRACT_OPTIONS = (
    "delete.tombstone.handling.mode",
    "delete.handling.mode",
    "drop.tombstones",
    "add.fields",
    "add.fields.prefix",
    "add.headers",
    "add.headers.prefix",
    "route.by.field",
    "drop.fields.header.name",
    "drop.fields.from.key",
    "drop.fields.keep.schema.compatible",
    "replace.null.with.default",
    "cdc.output.format",
    "untouched.fields",
    "compatibility",
)
#: What Debezium took before version 1.2, or 0.10. The Java connector's Debezium, 2.7, does not look at them.
REMOVED_OPTIONS = {
    "operation.header": "add.headers=op gives the operation, as the header __op",
    "add.source.fields": "add.fields=source.ts_ms gives a field of source, as the field __source_ts_ms",
    "drop.deletes": "delete.handling.mode says what becomes of deletes",
}
FLATTEN_OPTIONS = ("compatibility",)


def parse_extract_options(given: Mapping[str, str], *, safe: bool) -> ExtractOptions:
    """The options of ``ScyllaExtractNewRecordState``; ``safe`` starts from the defaults of ``extract-new-state``."""
    left = {name: text for name, text in given.items() if name not in REMOVED_OPTIONS}
    parser = _Parser(left, EXTRACT_OPTIONS, ignores=not safe)
    deletes, tombstones = _delete_modes(parser, safe)
    form = parser.one_of("cdc.output.format", tuple(IN_CELLS), "legacy")
    cells = IN_CELLS[form]
    usual = "omit" if safe and cells else "null"
    omit = parser.one_of("untouched.fields", ("null", "omit"), usual) == "omit"
    if omit and not cells:
        parser.wrong("untouched.fields", f"Contradicts cdc.output.format={form}, whose columns do not show it", "null")
    strict = parser.one_of("compatibility", ("default", "strict"), "default") == "strict"
    from_key = parser.boolean("drop.fields.from.key", False)
    if safe and from_key and not parser.has("drop.fields.header.name"):
        parser.wrong("drop.fields.from.key", "Has no meaning without drop.fields.header.name")
    options = ExtractOptions(
        deletes=deletes,
        tombstones=tombstones,
        add_fields=parser.references("add.fields", parser.given.get("add.fields.prefix", "__")),
        add_headers=parser.references("add.headers", parser.given.get("add.headers.prefix", "__")),
        route_by_field=parser.text("route.by.field") or None,
        drop_fields_header=parser.text("drop.fields.header.name") or None,
        drop_fields_from_key=from_key,
        drop_only_optional=parser.boolean("drop.fields.keep.schema.compatible", True),
        null_is_default=parser.boolean("replace.null.with.default", True),
        unwrap_cells=cells,
        omit_untouched=omit,
        strict=strict,
    )
    parser.end()
    return options


def ignored_of(
    given: Mapping[str, str], known: tuple[str, ...], removed: Mapping[str, str] = REMOVED_OPTIONS
) -> tuple[tuple[str, str], ...]:
    """Options that are ignored, as in Java, and what is to be said of each."""
    said = "has no effect, as in the Java connector, whose Debezium (2.7) has it no more"
    unknown = [name for name in given if name not in known and name not in removed and not nearest(name, known)]
    return (
        *((name, f"{said}: {instead}") for name, instead in removed.items() if name in given),
        *((name, f"has no effect: it knows {', '.join(known)}") for name in unknown),
    )


def _delete_modes(parser: _Parser, safe: bool) -> tuple[DeleteMode, TombstoneMode]:
    new, old = "delete.tombstone.handling.mode", ("delete.handling.mode", "drop.tombstones")
    for name in old:
        if parser.has(new) and parser.has(name):
            parser.wrong(name, f"Contradicts {new}, which replaces both older options", f"leave out {name}")
    mode = parser.one_of(new, tuple(_MODES), "")
    handling = parser.one_of(old[0], _OLD_MODES, "drop")
    drop = parser.boolean(old[1], True)
    if mode:
        return _MODES[mode]
    if safe and not (parser.has(old[0]) or parser.has(old[1])):
        return _MODES["delete-to-tombstone"]
    deletes: DeleteMode = "none" if handling == "none" else "rewrite" if handling == "rewrite" else "drop"
    return deletes, "drop" if drop else "keep"


def parse_flatten_options(given: Mapping[str, str]) -> FlattenOptions:
    """The options of ``ScyllaFlattenColumns``."""
    parser = _Parser(given, FLATTEN_OPTIONS, ignores=True)
    strict = parser.one_of("compatibility", ("default", "strict"), "default") == "strict"
    parser.end()
    return FlattenOptions(strict)
