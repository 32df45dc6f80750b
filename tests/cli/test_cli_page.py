"""The page of all commands is what their parsers say."""

from __future__ import annotations

from connector.cli.document_page import page
from tests.house import ROOT


def test_the_page_is_what_the_parsers_say() -> None:
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == page(), "run: python -m connector.cli.document_page > docs/commands.md"
