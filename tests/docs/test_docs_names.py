"""Names that people meet in what the service says or takes from its environment are explained on some page."""

from __future__ import annotations

import ast
import re

from connector.source.background import SOURCE
from tests.house import texts

PAGES = {name: text for name, text in texts(".md") if name.startswith("docs/") or name == "README.md"}


def test_every_background_task_is_in_the_table_of_what_to_do() -> None:
    page = PAGES["docs/operations.md"]
    table = page.partition("\n## Background tasks\n")[2].partition("\n## ")[0]
    named = [each for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for each in re.findall(r"`(\w+)`", row)]
    assert kinds() | {SOURCE} == set(named) - {"task"}
    process = kinds("connector/worker/supervisor.py", "connector/worker/kept_topics.py")
    assert len(process) == 3 and set(named[-3:]) == process, "the page calls the last three those of the process"


def kinds(*files: str) -> set[str]:
    """As they are shown, by status, `/health` and the metrics."""
    return {
        call.args[0].value.replace(" ", "_")
        for name, text in texts(".py")
        if name in files or (not files and name.startswith("connector/"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Purpose"
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    }


def test_every_variable_of_the_environment_is_on_a_page() -> None:
    read = {
        variable
        for name, text in texts(".py")
        if name.startswith(("connector/", "spark_jobs/", "embedded/commands/"))
        for variable in re.findall(r"\"(SCYLLA_(?:CDC_)?[A-Z_]+)\"", text)
    }
    assert {"SCYLLA_PASSWORD", "SCYLLA_CDC_CACHE"} <= read
    assert sorted(each for each in read if not any(f"`{each}`" in text for text in PAGES.values())) == []
