"""Other processes that run a connector of ours by another configuration: each reads the slots that it has by its own.

In: the connectors of this process and of the others, as they are shown. Out: of each connector, who runs it otherwise,
in what, and which tables he does not read. While a change is rolled out that is so for a while; where somebody took a
name that is taken, changes are in topics where nobody looks for them, or nowhere.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from connector.config import OUTPUT, OutputConfig
from connector.rest import ConnectorView

log = logging.getLogger(__name__)

# Processes hear of a new definition one after the other.
GRACE_SECONDS = 10.0

_TABLES = "scylla.table.names"
#: What records are, and where they go. How a server is reached, and how often, may differ from machine to machine.
_OF_RECORDS = frozenset({_TABLES, *(declared.name for declared in OUTPUT.properties)})
_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_STEPS = (*_CONVERTERS, "transforms", "predicates")
#: What decides over the bytes of a converter, and the properties that say so behind its name.
_OF_BYTES = {
    "kind": "",
    "schemas_enable": ".schemas.enable",
    "replace_null_with_default": ".replace.null.with.default",
    "encoding": ".encoding",
    "scrub_names": ".scrub.invalid.names",
    "connect_meta_data": ".connect.meta.data",
}
SHOWN = 3


class Unlike:
    """As one process hears of it, again and again."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: dict[tuple[str, str], float] = {}
        #: By connector, what lasts.
        self.found: Mapping[str, str] = {}

    def look(self, own: Iterable[ConnectorView], others: Iterable[tuple[str, Iterable[ConnectorView]]]) -> None:
        """``others`` by the names of their processes."""
        mine = {view.name: view for view in own if view.instance.state == "RUNNING"}
        now, said = self._monotonic(), dict[tuple[str, str], str]()
        for process, views in others:
            for view in views:
                if view.name in mine and view.instance.state == "RUNNING":
                    text = difference(mine[view.name], view)
                    if text:
                        said[view.name, process] = f"process {process} runs connector {view.name} as well, {text}"
        self._since = {place: self._since.get(place, now) for place in said}
        lasting: dict[str, list[str]] = {}
        for place, text in said.items():
            if now - self._since[place] >= GRACE_SECONDS:
                lasting.setdefault(place[0], []).append(text)
        self._tell({name: "; ".join(texts) for name, texts in lasting.items()}, mine)

    def _tell(self, found: Mapping[str, str], mine: Container[str]) -> None:
        for name in found.keys() | self.found.keys():
            if name not in found and name not in mine:
                continue  # nothing is known of the others
            if name not in found:
                log.info("connector %s: all processes run it by the same configuration again", name)
            elif found[name] != self.found.get(name):
                log.warning("%s", found[name])
        self.found = found


def converters_of(output: OutputConfig) -> dict[str, str]:
    """Those in force, wherever they are from, as far as they decide over bytes."""
    in_force = zip(_CONVERTERS, (output.key_converter, output.value_converter, output.header_converter))
    return {
        f"{named}{option}": str(getattr(converter, field))
        for named, converter in in_force
        for field, option in _OF_BYTES.items()
    }


def difference(mine: ConnectorView, other: ConnectorView) -> str:
    """What is otherwise elsewhere, in words; nothing, if it does not matter."""
    ours, theirs = _of_records(mine, other), _of_records(other, mine)
    unread = _tables(ours) - _tables(theirs)
    names = [*_differing(ours, theirs)]
    if not names:
        return ""
    text = f"by another configuration ({', '.join(names)}): each reads its slots by its own"
    if not unread:
        return text
    shown = ", ".join(sorted(unread)[:SHOWN]) + (f" and {len(unread) - SHOWN} more" if len(unread) > SHOWN else "")
    return f"{text}, and nobody reads {shown} in its slots"


def _of_records(view: ConnectorView, other: ConnectorView) -> dict[str, str]:
    """What decides over them, of a connector that the ``other`` is compared with: one of a version that tells no
    converters has its file alone."""
    written = {
        name: text.strip() for name, text in view.config.items() if name in _OF_RECORDS or name.startswith(_STEPS)
    }
    return written if other.converters is None else {**written, **(view.converters or {})}


def _differing(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(ours.keys() | theirs.keys()):
        if name == _TABLES:
            if _tables(ours) != _tables(theirs):
                yield name
        elif ours.get(name, "") != theirs.get(name, ""):
            yield name


def _tables(config: Mapping[str, str]) -> set[str]:
    return {table.strip() for table in config.get(_TABLES, "").split(",")} - {""}
