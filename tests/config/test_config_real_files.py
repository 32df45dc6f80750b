"""Forty-odd configurations with the habits of the world: what each is answered, to the word."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.cli.main import run
from tests.config.real_files import RealFiles, answer_of, cases

CASES = cases()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_real_files_get_their_answer(case: RealFiles, tmp_path: Path) -> None:
    assert answer_of(case, tmp_path) == case.answer


def test_there_are_enough_of_them_of_every_kind() -> None:
    kinds = [Path(name).suffix or name for case in CASES.values() for name in case.parts]
    assert len(CASES) >= 40
    assert {".json", ".properties", ".yaml", ".yml", "environment"} <= set(kinds)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.answer.startswith("status: 0")])
def test_what_is_valid_migrates_to_files_that_are(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for part, content in CASES[name].parts.items():
        path = tmp_path / (part if part != "environment" else "variables.env")
        path.write_bytes(content)
        if part != "environment" or content.startswith(b"CONNECT_"):
            files.append(str(path))
        else:
            for line in content.decode().splitlines():
                monkeypatch.setenv(*line.split("=", 1))
    assert run(["migrate", *files, "--to", str(tmp_path / "new")]) == 0
    written = sorted((tmp_path / "new").iterdir())
    connectors = [str(path) for path in written if path.name != "worker.json"]
    worker = [f"--worker={path}" for path in written if path.name == "worker.json"]
    assert run(["validate", "--offline", *connectors, *worker]) == 0
    assert "has no effect" not in capsys.readouterr().err
