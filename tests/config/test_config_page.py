"""The generated page is what the declarations say, and every property is declared once."""

from __future__ import annotations

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


def test_examples_load() -> None:
    configuration = load(ROOT / "config" / "connector.json", ROOT / "config" / "worker.json", {})
    assert configuration.connector.name == "orders"
    assert configuration.notices == ()
