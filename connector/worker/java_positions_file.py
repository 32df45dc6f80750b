"""The file in which `connect-standalone` keeps positions: a HashMap of byte arrays, as Java serialises it.

In: the file. Out: the records that the offsets topic of `connect-distributed` would have. Nothing but this one form is
read: what is anything else is refused, with the place where it differs, before anything of it is used.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from connector.errors import CdcError

#: A stream's head and a HashMap's description; both of its fields are numbers that do not matter here.
_HEAD: Final = (
    b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02"
    b"F\x00\x0aloadFactorI\x00\x09thresholdxp"
)
_ARRAY_CLASS: Final = b"r\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
_ARRAY, _NULL, _REFERENCE, _BLOCK, _END = b"u", b"p", b"q", b"w\x08", b"x"
_FIRST_HANDLE: Final = 0x7E0000
_MOST_BYTES: Final = 64 * 2**20


class _NotTheForm(Exception):
    """What is wrong, and where."""


def read_positions_file(path: Path) -> dict[bytes, bytes | None]:
    """Keys and values of the file; ``CdcError`` if there is none or it is another one."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CdcError(f"{path} cannot be read: {error.strerror or error}") from None
    try:
        return _Reader(content).entries()
    except _NotTheForm as error:
        raise CdcError(
            f"{path} is no file of positions of connect-standalone (offset.storage.file.filename): {error}"
        ) from None


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        #: What later parts of the stream refer to by its number: the map's class, the map, the class of arrays, arrays.
        self._handles: list[bytes | None] = [None, None]
        self._class_handle: int | None = None

    def entries(self) -> dict[bytes, bytes | None]:
        if not self._content:
            raise _NotTheForm("it is empty")
        if len(self._content) > _MOST_BYTES:
            raise _NotTheForm(f"it has more than {_MOST_BYTES // 2**20} MiB")
        self._expect(_HEAD, "a HashMap that Java has serialised")
        self._take(8)
        self._expect(_BLOCK, "the number of entries")
        count = struct.unpack(">ii", self._take(8))[1]
        if not 0 <= count <= len(self._content):
            raise _NotTheForm(f"{count} entries cannot be in it")
        found: dict[bytes, bytes | None] = {}
        for _ in range(count):
            key, value = self._array(), self._array()
            if key is not None:
                found[key] = value
        self._expect(_END, "the end of the map")
        if self._at != len(self._content):
            raise _NotTheForm(f"something follows behind the map, at byte {self._at}")
        return found

    def _array(self) -> bytes | None:
        kind = self._take(1)
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._referred()
        if kind != _ARRAY:
            raise _NotTheForm(f"at byte {self._at - 1} is no array of bytes")
        self._array_class()
        length = struct.unpack(">i", self._take(4))[0]
        if length < 0:
            raise _NotTheForm(f"an array at byte {self._at - 4} has {length} bytes")
        content = self._take(length)
        self._handles.append(content)
        return content

    def _array_class(self) -> None:
        if self._class_handle is None:
            self._expect(_ARRAY_CLASS, "an array of bytes")
            self._class_handle = len(self._handles)
            self._handles.append(None)
        else:
            self._expect(_REFERENCE + struct.pack(">i", _FIRST_HANDLE + self._class_handle), "an array of bytes")

    def _referred(self) -> bytes:
        number = int(struct.unpack(">i", self._take(4))[0]) - _FIRST_HANDLE
        found = self._handles[number] if 0 <= number < len(self._handles) else None
        if found is None:
            raise _NotTheForm(f"at byte {self._at - 5} is no array of bytes")
        return found

    def _expect(self, wanted: bytes, what: str) -> None:
        at = self._at
        if self._content[at : at + len(wanted)] != wanted:
            raise _NotTheForm(f"at byte {at} should be {what}")
        self._at += len(wanted)

    def _take(self, count: int) -> bytes:
        part = self._content[self._at : self._at + count]
        if len(part) < count:
            raise _NotTheForm(f"it ends at byte {len(self._content)}, in the middle of something")
        self._at += count
        return part
