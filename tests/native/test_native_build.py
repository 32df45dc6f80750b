"""Which compiler the kernel is built with."""

from __future__ import annotations

import platform
import shutil
import sys

import pytest

from connector.native import build
from connector.native.build import compiler


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without a compiler, but with the wheel that is one."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(build, "find_spec", lambda name: name == "ziglang")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    return monkeypatch


def test_a_wheel_compiles_where_the_machine_has_no_compiler(bare: pytest.MonkeyPatch) -> None:
    """For any processor of the kind: what it makes of its own accord would not run on an older one."""
    command = compiler()
    assert command is not None
    assert command[:5] == [sys.executable, "-P", "-m", "ziglang", "cc"]
    assert command[5:] == ["-target", "x86_64-linux-gnu.2.17"]


def test_the_machines_compiler_comes_first(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name in ("gcc", "clang") else None)
    assert compiler() == ["gcc"]


def test_what_cc_says_is_used_and_nothing_else(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("CC", "none")
    assert compiler() is None


@pytest.mark.parametrize(
    ("what", "answer"), [("machine", "ppc64le"), ("libc_ver", ("", ""))], ids=["another processor", "another library"]
)
def test_where_the_wheel_would_not_do_there_is_none(bare: pytest.MonkeyPatch, what: str, answer: object) -> None:
    bare.setattr(platform, what, lambda: answer)
    assert compiler() is None
