"""What a file of settings holds.

In: a path. Out: its bytes; ``OSError`` says why there are none. Or its text, if there is any. A pipe says what it has
once, to the first who asks: that stands for as long as the process lives.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MOST_BYTES = 16 * 2**20

#: What pipes said, by their paths and what these led to.
_said: dict[tuple[Path, int, int], bytes] = {}


def file_content(path: Path) -> bytes:
    """Never more than any file of settings has, for devices have no end."""
    try:
        found = path.stat()
        if not stat.S_ISFIFO(found.st_mode):
            return _read(path)
        pipe = path, found.st_dev, found.st_ino
        if pipe not in _said:
            _said[pipe] = _read(path)
        return _said[pipe]
    except ValueError as error:  # a NUL in the path
        raise OSError(0, str(error)) from None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(0, f"has more than {_MOST_BYTES // 2**20} MiB")
    return content


def file_text(path: Path) -> str | None:
    """Of a file that need not be there: None if there is no text to be had."""
    try:
        return file_content(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def why_unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "There is no such file"
    if isinstance(error, PermissionError):
        # In a container it is another user than who wrote the file, and no name tells which.
        return f"{error.strerror}: this process runs as user {os.geteuid()}, group {os.getegid()}"
    return error.strerror or str(error)
