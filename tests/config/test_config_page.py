"""The generated page is what the declarations say, and every property is declared once."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from connector.config import load
from connector.config.document_page import page
from connector.config.properties.catalogue import CONNECTOR_SECTIONS, WORKER_SECTIONS
from connector.config.properties.property import Effect

ROOT = Path(__file__).parents[2]


def test_the_page_in_the_tree_is_the_generated_one() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m connector.config.document_page > docs/configuration.md"


def test_declarations_are_complete() -> None:
    for sections in (CONNECTOR_SECTIONS, WORKER_SECTIONS):
        for section in sections:
            for declared in section.properties:
                assert declared.doc, declared.name
                assert bool(declared.reason) == (declared.effect is not Effect.WORKS), declared.name


def test_a_property_that_works_is_taken_somewhere() -> None:
    """By its whole name, or by one that is put together: a declaration alone does nothing."""
    whole, parts = set(), set()
    for path in (ROOT / "connector").rglob("*.py"):
        if path.parent.name == "properties":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                fixed = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
                if fixed[-1] is not None and len("".join(filter(None, fixed))) >= len(".converter"):
                    parts.add("".join(".+" if text is None else re.escape(text) for text in fixed))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
    together = re.compile("|".join(parts))
    declared = [
        one.name
        for sections in (CONNECTOR_SECTIONS, WORKER_SECTIONS)
        for section in sections
        for one in section.properties
        if one.effect is Effect.WORKS
    ]
    assert [name for name in declared if name not in whole and not together.fullmatch(name)] == []


def test_examples_load() -> None:
    configuration = load(ROOT / "config" / "connector.json", ROOT / "config" / "worker.json", {})
    assert configuration.connector.name == "orders"
    assert configuration.notices == ()
