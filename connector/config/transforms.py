"""``transforms`` and ``predicates`` of a connector's file: which ones are named, with what options.

In: the connector's properties as text. Out: ``TransformSpec``s and problems. Classes and options are
checked by the room that owns them, through the ``TransformCheck`` that the caller of ``load`` hands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connector.config.properties import OutputFormat
from connector.errors import Problem
from connector.step_conditions import conditions_in, step_condition
from connector.step_defaults import DEBEZIUM_EXTRACT, EXTRACT, FLATTEN, SAFE_EXTRACT, of_the_connector
from connector.suggestions import did_you_mean, nearest

REGEX_ROUTER = "RegexRouter"

#: Those of Kafka Connect that there are for keys and for values, and the others.
_SIDED = (
    *("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField"),
    *("SetSchemaMetadata", "TimestampConverter"),
)
_FILTER = "Filter"
_PLAIN = ("DropHeaders", _FILTER, "InsertHeader", REGEX_ROUTER, "TimestampRouter", "ValueToKey")
_OF_DEBEZIUM = (DEBEZIUM_EXTRACT, "ByLogicalTableRouter")

_SCYLLA = "com.scylladb.cdc.debezium.connector.transforms."
_APACHE = "org.apache.kafka.connect.transforms."

#: Every accepted spelling of a transform's class.
TRANSFORMS: dict[str, str] = {
    _SCYLLA + EXTRACT: EXTRACT,
    EXTRACT: EXTRACT,
    SAFE_EXTRACT: SAFE_EXTRACT,
    _SCYLLA + FLATTEN: FLATTEN,
    FLATTEN: FLATTEN,
    **{prefix + name: name for name in _OF_DEBEZIUM for prefix in ("io.debezium.transforms.", "")},
    **{prefix + name: name for name in _PLAIN for prefix in (_APACHE, "")},
    **{
        f"{prefix}{name}${side}": f"{name}${side}"
        for name in _SIDED
        for side in ("Key", "Value")
        for prefix in (_APACHE, "")
    },
}

#: Every accepted spelling of a predicate's class.
PREDICATES: dict[str, str] = {
    _APACHE + "predicates." + name: name for name in ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")
} | {name: name for name in ("TopicNameMatches", "HasHeaderKey", "RecordIsTombstone")}


@dataclass(frozen=True, slots=True)
class PredicateSpec:
    """A predicate: ``type`` is the simple class name."""

    alias: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TransformSpec:
    """One step of the chain: ``type`` is the simple class name, ``options`` are texts as given."""

    alias: str
    type: str
    options: Mapping[str, str] = field(default_factory=dict)
    predicate: PredicateSpec | None = None
    negate: bool = False


@dataclass(frozen=True, slots=True)
class TransformNote:
    """Something to be known about an option that is taken."""

    property: str
    text: str


#: Called with a transform or a predicate, and whether values are written without schemas; what it finds is named after
#: options.
TransformCheck = Callable[[TransformSpec | PredicateSpec, bool], Sequence[Problem | TransformNote]]


def read_transforms(
    aliases: Sequence[str],
    predicate_aliases: Sequence[str],
    raw: Mapping[str, str],
    check: TransformCheck | None = None,
    *,
    schemaless: bool = True,
    output_format: OutputFormat = "legacy",
) -> tuple[tuple[TransformSpec, ...], list[Problem | TransformNote]]:
    """The chain that ``raw`` describes, and everything that is wrong with it or to be known about it."""
    problems: list[Problem | TransformNote] = []
    predicates = {}
    for alias in predicate_aliases:
        predicate = _read_predicate(alias, raw, problems, check)
        if predicate:
            predicates[alias] = predicate
    problems += _twice("predicates", predicate_aliases)
    problems += _twice("transforms", aliases)
    specs = []
    for alias in aliases:
        spec = _read_transform(alias, raw, predicates, predicate_aliases, problems, check)
        if spec is None:
            continue
        spec = replace(spec, options=of_the_connector(spec.type, spec.options, output_format) | dict(spec.options))
        specs.append(spec)
        if check:
            problems += _named(f"transforms.{alias}.", check(spec, schemaless), raw)
        if spec.type == _FILTER and f"transforms.{alias}.predicate" not in raw:
            text = "has no predicate, so it drops every record, as in Kafka Connect"
            problems.append(TransformNote(f"transforms.{alias}.type", text))
    return tuple(specs), problems


def _options(prefix: str, raw: Mapping[str, str]) -> dict[str, str]:
    return {name[len(prefix) :]: text for name, text in raw.items() if name.startswith(prefix)}


def _twice(what: str, aliases: Sequence[str]) -> list[Problem]:
    doubled = sorted({alias for alias in aliases if aliases.count(alias) > 1})
    return [Problem(what, f"'{alias}' is named twice", ",".join(aliases)) for alias in doubled]


def _read_predicate(
    alias: str, raw: Mapping[str, str], problems: list[Problem | TransformNote], check: TransformCheck | None
) -> PredicateSpec | None:
    options = _options(f"predicates.{alias}.", raw)
    text = options.pop("type", "").strip()
    options.pop("plugin.version", None)
    kind = PREDICATES.get(text)
    if kind is None:
        problems += _no_class(f"predicates.{alias}.", PredicateSpec(alias, text), raw, check, PREDICATES)
        return None
    spec = PredicateSpec(alias, kind, options)
    if check:
        problems += _named(f"predicates.{alias}.", check(spec, True), raw)
    return spec


def _read_transform(
    alias: str,
    raw: Mapping[str, str],
    predicates: Mapping[str, PredicateSpec],
    predicate_aliases: Sequence[str],
    problems: list[Problem | TransformNote],
    check: TransformCheck | None,
) -> TransformSpec | None:
    options = _options(f"transforms.{alias}.", raw)
    text = options.pop("type", "").strip()
    condition = step_condition(options.pop("predicate", None), options.pop("negate", None), predicate_aliases)
    options.pop("plugin.version", None)
    for each in condition.wrong:
        hint = each.lacks and f"transforms.{alias}.{each.lacks}"
        if each.option == "predicate":
            hint = f"add {each.value} to predicates" if each.value else "leave it out, or name one of predicates"
            hint = did_you_mean(each.value, predicate_aliases) or hint
        problems.append(Problem(f"transforms.{alias}.{each.option}", each.problem, each.value, hint))
    for name, meant in conditions_in(options).items():
        hint = f"did you mean transforms.{alias}.{meant}?"
        problems.append(Problem(f"transforms.{alias}.{name}", "Unknown option", options.pop(name), hint))
    kind = TRANSFORMS.get(text)
    if kind is None:
        problems += _no_class(f"transforms.{alias}.", TransformSpec(alias, text), raw, check, TRANSFORMS)
        return None
    return TransformSpec(alias, kind, options, predicates.get(condition.predicate), condition.negate)


def _named(
    prefix: str, found: Sequence[Problem | TransformNote], raw: Mapping[str, str]
) -> Iterator[Problem | TransformNote]:
    """What a check found, under the names of the file."""
    for one in found:
        name = prefix + (one.property or "type")
        named = replace(one, property=name)
        yield replace(named, value=raw.get(name)) if isinstance(named, Problem) else named


def _no_class(
    prefix: str,
    spec: TransformSpec | PredicateSpec,
    raw: Mapping[str, str],
    check: TransformCheck | None,
    known: Mapping[str, str],
) -> list[Problem | TransformNote]:
    """Of a class that there is not, in the words of who knows them all, if it is asked."""
    found = check(spec, True) if check is not None and spec.type else ()
    told = list(_named(prefix, [one for one in found if isinstance(one, Problem)], raw))
    what = "transform" if isinstance(spec, TransformSpec) else "predicate"
    return told or [_unknown_class(f"{prefix}type", spec.type, what, known)]


def _unknown_class(name: str, text: str, what: str, known: Mapping[str, str]) -> Problem:
    supported = ", ".join(sorted(set(known.values())))
    if not text:
        return Problem(
            name, f"Missing required configuration: the class of the {what}", None, f"supported: {supported}"
        )
    package, _, short = text.rpartition(".")
    # Another package's class is another class, however alike its name is.
    near = not package or nearest(package, {name.rpartition(".")[0] for name in known} - {""}, 0.9)
    hint = did_you_mean(short.removesuffix("$Value").removesuffix("$Key"), known, 0.8) if near else None
    supported = f"{hint} supported: {supported}" if hint else f"supported: {supported}"
    return Problem(name, f"This {what} is not supported", text, supported)
