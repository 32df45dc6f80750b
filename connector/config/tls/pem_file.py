"""PEM text for libraries that take files only.

In: the text, often a private key. Out: a path that has it until it is closed. It is in memory where the system can do
that: a container with a read-only root has no place for a file, and one on a disk outlives a process that is killed.
"""

from __future__ import annotations

import os
import tempfile
from types import TracebackType
from typing import IO


class PemFile:
    """``path`` can be read by this user alone, and by this process alone if it is in memory."""

    def __init__(self, text: str) -> None:
        self._file, self.path = _in_memory() or _on_disk()
        self._file.write(text)
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PemFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _in_memory() -> tuple[IO[str], str] | None:
    """None where there is no such file (macOS, a kernel that forbids it), or none that has a name (no /proc)."""
    try:
        descriptor = os.memfd_create("scylla-cdc")
    except (AttributeError, OSError):
        return None
    path = f"/proc/self/fd/{descriptor}"
    if os.access(path, os.R_OK):
        return os.fdopen(descriptor, "w", encoding="utf-8"), path
    os.close(descriptor)
    return None


def _on_disk() -> tuple[IO[str], str]:
    file = tempfile.NamedTemporaryFile("w", prefix="scylla-cdc-", suffix=".pem", encoding="utf-8")  # noqa: SIM115
    return file, file.name
