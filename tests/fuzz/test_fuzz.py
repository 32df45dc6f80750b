"""Each fuzzer for a few seconds, with a fixed seed; long runs are by hand (``python -m tests.fuzz``)."""

from __future__ import annotations

import pytest

from tests.fuzz import fuzzers

INPUTS = {"configurations": 25, "key-stores": 100, "huge-numbers": 60, "http-requests": 150, "files": 600}


@pytest.mark.parametrize("name", fuzzers.FUZZERS)
def test_no_input_raises_what_nobody_expects(name: str) -> None:
    assert not fuzzers.fuzz(name, INPUTS.get(name, 1_000), seed=16)


def test_what_nobody_expects_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fuzzers.FUZZERS, "broken", lambda draw: [][draw.randrange(1)])
    assert fuzzers.fuzz("broken", 2, seed=3)[1].startswith("broken, seed 3, input 1: IndexError")
