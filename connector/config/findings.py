"""What loading has to say: problems, which end it, and notices, which are told once at start.

Every value that gets into a message passes here, so that masking happens in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from connector.config.document import Document
from connector.errors import Problem


@dataclass(slots=True)
class Findings:
    """Collected in the order in which files are read; the same thing is said once."""

    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def problem(
        self, document: Document, name: str, text: str, suggestion: str | None = None, *, secret: bool = False
    ) -> None:
        """Something wrong with the property ``name`` of a document; its value is added, masked."""
        found = Problem(
            name,
            document.without_secrets(name, text),
            document.masked(name, secret),
            None if suggestion is None else document.without_secrets(name, suggestion),
            document.place(name),
        )
        if found not in self.problems:
            self.problems.append(found)

    def notice(self, document: Document, name: str, text: str) -> None:
        """A property that is accepted, with what is to be known about it."""
        line = f"{document.place(name)}: {name}: {document.without_secrets(name, text)}"
        if line not in self.notices:
            self.notices.append(line)
