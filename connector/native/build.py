"""Builds the kernel with whatever C compiler there is: ``python -m connector.native``.

In: the sources in ``kernel/``. Out: one library beside them, that serves every Python, or nothing where there is no
compiler: neither the machine's own nor one that is a wheel. Nothing needs it: records are then made the plain way.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parent / "kernel"
LIBRARY: Final = FOLDER / "libscyllacdc.so"
_UNITS: Final = ("kernel.c", "kafka.c", "sieve.c")
#: What the zig compiler's wheel is asked to compile for.
_BY_WHEEL: Final = ("x86_64", "aarch64")
_OPTIONS: Final = ("-O2", "-std=c99", "-fPIC", "-shared", "-fvisibility=default")


def sources_hash(folder: Path = FOLDER) -> str:
    """Of everything that the library is made from."""
    made = hashlib.sha256()
    for path in sorted((*folder.glob("*.c"), *folder.glob("*.h"))):
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()[:32]


def compiler() -> list[str] | None:
    """``CC``, or the usual names, or the wheel that is one; the command with its first options."""
    given = os.environ.get("CC")
    names = [given] if given else ["cc", "gcc", "clang"]
    for name in names:
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    machine = platform.machine()
    if given or not find_spec("ziglang") or machine not in _BY_WHEEL or platform.libc_ver()[0] != "glibc":
        return None
    # For any such machine: what zig makes of its own accord is for the processor that it runs on.
    return [sys.executable, "-P", "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.2.17"]


def build(command: Sequence[str], target: Path = LIBRARY, options: Sequence[str] = (), folder: Path = FOLDER) -> None:
    """Compile; raises CalledProcessError with what the compiler said."""
    # Beside its place first: whoever loads it meanwhile sees the old one or the new one.
    made = target.with_name(f".{target.name}.{os.getpid()}")
    defined = f'-DSOURCES="{sources_hash(folder)}"'
    arguments = [*command, *_OPTIONS, *options, defined, *(str(folder / unit) for unit in _UNITS), "-o", str(made)]
    try:
        subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=600)
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)


def main() -> None:
    found = compiler()
    if found is None:
        print("no C compiler: records are made without the native path, which is slower", file=sys.stderr)
        return
    try:
        build(found)
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", None) or error
        print(f"the native path was not built, and records are made without it: {said}", file=sys.stderr)
