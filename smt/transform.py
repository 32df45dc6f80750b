"""A transform by its name: Java's class names with Java's defaults, ``extract-new-state`` with safe ones.

In: a class name, full or short, and options as text. Out: a ``Transform``, or ``SmtOptionError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from connector.step_defaults import DEBEZIUM_EXTRACT, EXTRACT, FLATTEN, SAFE_EXTRACT
from smt.connect.options import Option
from smt.connect.predicates import PREDICATES, PREDICATES_PACKAGE
from smt.connect.refused import refusal
from smt.connect.registry import CONNECT_TYPES, build_connect, connect_options
from smt.envelope import omit_refused
from smt.errors import OptionProblem, SmtError, SmtOptionError, SmtRecordError, nearest
from smt.extract import build_extract, losses_of
from smt.flatten import build_flatten, losses_of_flattening
from smt.options import EXTRACT_OPTIONS, FLATTEN_OPTIONS, ignored_of, parse_extract_options, parse_flatten_options
from smt.record import Header, Record
from smt.typed import TypedRows
from smt.unwrapping import Unwraps, unwraps_cells, unwraps_rows

_PACKAGE = "com.scylladb.cdc.debezium.connector.transforms."

#: Every accepted spelling, and the transform it means.
TYPES: dict[str, str] = {
    _PACKAGE + EXTRACT: EXTRACT,
    EXTRACT: EXTRACT,
    SAFE_EXTRACT: SAFE_EXTRACT,
    _PACKAGE + FLATTEN: FLATTEN,
    FLATTEN: FLATTEN,
    "io.debezium.transforms." + DEBEZIUM_EXTRACT: DEBEZIUM_EXTRACT,
    DEBEZIUM_EXTRACT: DEBEZIUM_EXTRACT,
    **CONNECT_TYPES,
}


#: By its last part, the name of each in full, where it has a package.
_FULL = {short: short for short in TYPES.values()} | {name.rpartition(".")[2]: name for name in TYPES if "." in name}
PACKAGES = sorted({name.rpartition(".")[0] for name in _FULL.values()} - {""})


@dataclass(frozen=True, slots=True)
class Transform:
    """``apply`` is the bare function, for loops; ``losses`` says what the options lose, to be told once at start.

    ``routes``: it changes the topic of records, and nothing else of them. ``unwraps`` tells what becomes of envelopes,
    where their schema decides that. ``ignored``: options that it has not, as in Java, and what is to be said of them.
    ``gives``: the headers that it adds to the record that it takes, where Java's does not copy that first.
    ``again`` makes it anew, which is how it gets into another process: what it is made of cannot be pickled.
    """

    type: str
    apply: Callable[[Record], Record | None]
    losses: tuple[str, ...] = ()
    routes: bool = False
    unwraps: Unwraps | None = None
    ignored: tuple[tuple[str, str], ...] = ()
    gives: Callable[[Record], list[Header]] | None = None
    again: Callable[[], Transform] | None = field(default=None, repr=False, compare=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """All that is to be told once at start."""
        return (*self.losses, *(f"{option} is no option of it, and {text}" for option, text in self.ignored))

    def __call__(self, record: Record) -> Record | None:
        return self.apply(record)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.again is None:
            raise TypeError(f"this {self.type} was not made by build_transform or build_chain, and cannot be pickled")
        return self.again, ()


def transform_type(name: str) -> str:
    """The transform that a spelling means; raises ``SmtOptionError`` listing those there are."""
    found = TYPES.get(name.strip())
    if found is None:
        raise SmtOptionError([unknown_type(name.strip())])
    return found


def unknown_type(name: str) -> OptionProblem:
    """What is wrong with a name that is none of a transform."""
    package, _, short = name.rpartition(".")
    refused = refusal(name)
    if refused is not None:
        return OptionProblem("", f"{short.partition('$')[0]} is not supported: {refused}")
    if package == PREDICATES_PACKAGE and short in _FULL:
        return OptionProblem("", f"There is no transform {name!r}", f"did you mean {_FULL[short]}?")
    if name in PREDICATES or package == PREDICATES_PACKAGE:
        said = f"{short} is a predicate" if name in PREDICATES else f"The classes of {package} are predicates"
        place = "predicates.NAME.type is where it belongs, transforms.OTHER.predicate=NAME says what it is for"
        return OptionProblem("", f"{said}, and no transform{'' if name in PREDICATES else 's'}", place)
    if not package or package.startswith("com.scylladb.") or nearest(package, PACKAGES, 0.9):
        if f"{short}$Value" in TYPES:
            return OptionProblem("", f"There is no transform {name!r}", f"{name}$Key or {name}$Value")
        # Names as a whole are alike by their packages alone.
        close = nearest(short, _FULL, 0.8)
        hint = f"did you mean {_FULL[close] if package else close}?" if close else "one of " + ", ".join(sorted(_FULL))
        return OptionProblem("", f"There is no transform {name!r}", hint)
    # Another package's class is another class, however alike its name is.
    said = f"{short.partition('$')[0]} of {package} is not available: classes of the JVM cannot be loaded here"
    instead = "docs/smt.md lists what there is; run it where records are read, in the consumer or the Connect of a sink"
    return OptionProblem("", said, instead)


def transform_options(type_name: str) -> tuple[Option, ...]:
    """All that a transform may be told, as tools show it; nothing, if there is no such transform."""
    kind = TYPES.get(type_name.strip())
    if kind is None:
        return ()
    if kind in CONNECT_TYPES:
        return connect_options(kind)
    names = FLATTEN_OPTIONS if kind == FLATTEN else EXTRACT_OPTIONS
    return tuple(Option(name, "text", "Explained in docs/smt.md.", default=None) for name in names)


def build_transform(
    type_name: str,
    options: Mapping[str, str] | None = None,
    *,
    schemaless_output: bool | None = None,
    unset: bool = False,
    cells: bool | None = None,
) -> Transform:
    """The transform of that name with these options; raises ``SmtOptionError`` with all that is wrong with them.

    ``schemaless_output`` says whether values will be written without schemas, so that fields may be left out of them;
    None: as each record comes, with a schema or without. ``unset``: records come from the connector, which writes
    defaults where Java's sets nothing. ``cells``: whether the columns of records come in cells; None: nobody knows, and
    what flattening them loses, which only the connector's configuration mends, is not told.
    """
    given = dict(options or {})
    again = partial(build_transform, type_name, given, schemaless_output=schemaless_output, unset=unset, cells=cells)
    return replace(_built(transform_type(type_name), given, schemaless_output, unset, cells), again=again)


def _built(
    kind: str, options: Mapping[str, str], schemaless_output: bool | None, unset: bool, cells: bool | None
) -> Transform:
    if kind == FLATTEN:
        flat = parse_flatten_options(options)
        ignored = ignored_of(options, FLATTEN_OPTIONS, {})
        losses = losses_of_flattening() if cells else ()
        return Transform(kind, _guarded(build_flatten(flat)), losses, unwraps=unwraps_cells(flat), ignored=ignored)
    if kind in CONNECT_TYPES:
        built = build_connect(kind, options)
        return Transform(kind, _guarded(built.apply), (), built.routes, ignored=built.ignored)
    form = {"cdc.output.format": "advanced"} if kind == DEBEZIUM_EXTRACT else {}
    parsed = parse_extract_options({**form, **options}, safe=kind == SAFE_EXTRACT)
    if parsed.omit_untouched and schemaless_output is False:
        raise omit_refused("values are written with schemas, and a schema names every field")
    apply = build_extract(parsed, schemaless_output=bool(schemaless_output), unset=unset)
    ignored = ignored_of(options, EXTRACT_OPTIONS)
    gives = TypedRows(parsed, True, unset).added_headers if parsed.add_headers else None
    losses = losses_of(parsed, cells=cells is not False, with_schemas=schemaless_output is False)
    return Transform(kind, _guarded(apply), losses, unwraps=unwraps_rows(parsed), ignored=ignored, gives=gives)


def _guarded(apply: Callable[[Record], Record | None]) -> Callable[[Record], Record | None]:
    """A record that is not what its schema says is an error of the record."""

    def guarded(record: Record) -> Record | None:
        try:
            done = apply(record)
            if done is not None and done is not record:
                done.place = record.place
            return done
        except (SmtError, MemoryError):
            raise
        except Exception as error:
            raise SmtRecordError(
                f"the record is not what its schema says ({type(error).__name__}: {error}): whoever wrote it wrote "
                "something else than change records"
            ) from None

    return guarded
