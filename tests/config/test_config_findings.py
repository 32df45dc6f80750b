"""What is wrong with a file is said once, however much it is."""

from __future__ import annotations

import pytest

from connector.config.document import Document
from connector.config.findings import Findings
from connector.errors import Problem


def test_problems_are_said_once_and_not_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    equal = Problem.__eq__

    def counted(one: Problem, other: object) -> bool:
        nonlocal compared
        compared += 1
        return bool(equal(one, other))

    document, findings = Document("c.json"), Findings()
    findings.problems.append(Problem("first", "Unknown property", file="c.json"))
    monkeypatch.setattr(Problem, "__eq__", counted)
    for number in range(2_000):
        findings.problem(document, f"name.{number}", "Unknown property")
    assert compared < 2_000
    findings.problem(document, "name.7", "Unknown property")
    findings.problem(document, "first", "Unknown property")
    monkeypatch.undo()
    assert [each.property for each in findings.problems] == ["first", *(f"name.{number}" for number in range(2_000))]
