"""From texts to typed values, property by property.

In: a document and its declarations. Out: values by name; what cannot be parsed is reported and keeps its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.properties import CONNECTOR, RENAMED, Effect, Invalid, Property
from connector.config.unfilled import unfilled
from connector.suggestions import nearest


def parse(document: Document, declared: Mapping[str, Property], findings: Findings) -> dict[str, Any]:
    """The value of each declared property, under its own name whichever of its spellings the document has."""
    values: dict[str, Any] = {}
    for spelling, one in declared.items():
        if spelling != one.name:
            continue
        values[one.name] = one.default
        name = next((name for name in (one.name, *one.aliases) if name in document.texts), one.name)
        text = document.texts.get(name)
        if name in document.broken:
            if one.effect is Effect.NONE:
                findings.notice(document, name, f"has no effect here: {one.reason}")
            continue
        if text is None or (one.required and not text.strip()):
            if one.required and document.readable:
                findings.problem(document, name, one.required, _rename_hint(name, document))
            continue
        try:
            values[one.name] = one.kind.parse(text)
        except Invalid as invalid:
            places = unfilled(document.written.get(name, ""), as_a_whole=one.secret)
            hint = next((advice for _, advice in places), invalid.suggestion)
            findings.problem(document, name, invalid.problem, hint, secret=one.secret)
            continue
        if one.effect is Effect.NONE:
            findings.notice(document, name, f"has no effect here: {one.reason}")
    return values


def _rename_hint(name: str, document: Document) -> str | None:
    older = [old for old, new in RENAMED.items() if new == name and old in document.texts]
    if older:
        return f"rename {older[0]} to {name}"
    typo = nearest(name, document.texts, 0.85)
    return f"did you mean it by {typo}?" if typo and typo not in CONNECTOR else None
