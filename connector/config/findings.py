"""Findings of loading: problems, which end it, and notices, which are logged once at start.

Every value that gets into a message passes here, so that masking happens in one place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from connector.config.document import Document
from connector.config.secret import is_secret_name
from connector.errors import Problem


@dataclass(slots=True)
class Findings:
    """Collected in the order in which files are read; the same thing is said once."""

    problems: list[Problem] = field(default_factory=list)
    _said: set[Problem] = field(default_factory=set)
    _notices: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    #: Those of the notices that Kafka Connect would warn of, too.
    _warned: set[tuple[str, str]] = field(default_factory=set)

    def problem(
        self,
        document: Document,
        name: str,
        text: str,
        suggestion: str | None = None,
        *,
        secret: bool = False,
        known: bool = True,
    ) -> None:
        """Something wrong with the property ``name`` of a document; its value is added, masked.

        That of a name which is not ``known`` is left out: whatever it was meant to be, it may have been a secret.
        """
        found = Problem(
            name,
            document.without_secrets(name, text),
            document.masked(name, secret) if known or secret or is_secret_name(name) else None,
            None if suggestion is None else document.without_secrets(name, suggestion),
            document.place(name),
        )
        # A file may have as many as somebody likes; what others have put there is looked at as well.
        if len(self._said) != len(self.problems):
            self._said = set(self.problems)
        if found not in self._said:
            self._said.add(found)
            self.problems.append(found)

    def notice(self, document: Document, name: str, text: str, *, warn: bool = False) -> None:
        """A property that is accepted, with what is to be known about it."""
        said = document.place(name), document.without_secrets(name, text)
        self._notices.setdefault(said, {})[name] = None
        if warn:
            self._warned.add(said)

    def remark(self, place: str, text: str, *, warn: bool = False) -> None:
        """Something to be known that is about no single property."""
        self._notices.setdefault((place, text), {})
        if warn:
            self._warned.add((place, text))

    def said_of(self, document: Document, name: str) -> list[str]:
        """What is to be known about one property."""
        place = document.place(name)
        return [text for (where, text), names in self._notices.items() if where == place and name in names]

    @property
    def notices(self) -> tuple[str, ...]:
        """One line for each thing to be known, with the names of all properties that it is true of."""
        return tuple(_line(*said, names) for said, names in self._notices.items())

    @property
    def warnings(self) -> frozenset[str]:
        """Which of the notices are warnings."""
        return frozenset(_line(*said, self._notices[said]) for said in self._warned)


def _line(place: str, text: str, names: Iterable[str]) -> str:
    return ": ".join(filter(None, (place, ", ".join(names), text)))
