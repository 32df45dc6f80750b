"""Reasons of dead letters: one list, which the SQL, the counters and the documentation are made from."""

from __future__ import annotations

import re

from spark_jobs.model import DeadReason
from tests.house import ROOT, texts


def test_the_documentation_lists_every_reason() -> None:
    page = (ROOT / "docs/landing.md").read_text().partition("## Dead letters")[2].partition("\n## ")[0]
    table = re.findall(r"^\| ([A-Z0-9_]+) \| (.*) \|$", page, re.MULTILINE)
    assert table == [(reason, reason.meaning) for reason in DeadReason]


def test_every_reason_is_given_by_what_decodes() -> None:
    decoding = "".join(text for name, text in texts(".py") if name.startswith("spark_jobs/decode/"))
    assert set(re.findall(r"DeadReason\.([A-Z0-9_]+)", decoding)) == set(DeadReason)


def test_no_other_module_spells_a_reason() -> None:
    spelled = re.compile(rf"""["'](?:{"|".join(DeadReason)})["']""")
    found = [name for name, text in texts(".py") if name.startswith("spark_jobs/") and spelled.search(text)]
    assert found == ["spark_jobs/model/dead_reason.py"]
