"""What a store of secrets is to those who look something up in it.

In: a path. Out: texts by their keys, each path asked for once; ``StoreError`` says in plain words why there are none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

#: From a path to what stands there.
Read = Callable[[str], Mapping[str, Any]]

#: Of a reference with one part, where no prefix of the provider's is the path.
NO_PATH: Final = "it names no path, or no key: ${provider:path:key}"


class StoreError(Exception):
    """A store that cannot be asked, or that has nothing there; the message holds no secret."""


class SecretStore:
    """One provider of a worker's file. ``connect`` is called with the first path that somebody wants."""

    def __init__(self, name: str, connect: Callable[[], Read]) -> None:
        self.name = name
        self._connect = connect
        self._read: Read | None = None
        self._known: dict[str, dict[str, str]] = {}
        #: By the path; None: the store itself.
        self._failed: dict[str | None, str] = {}

    def look_up(self, path: str, key: str) -> str:
        """The text of a key at a path."""
        if path not in self._known:
            self._known[path] = self._ask(path)
        found = self._known[path].get(key)
        if found is None:
            keys = ", ".join(sorted(self._known[path])) or "none"
            raise StoreError(f"{self.name} has no key {key} at {path} (there are: {keys})")
        return found

    def _ask(self, path: str) -> dict[str, str]:
        if path in self._failed or None in self._failed:
            raise StoreError(self._failed.get(None) or self._failed[path])
        try:
            if self._read is None:
                self._read = self._connect()
        except StoreError as error:
            # What is wrong with the store itself is not asked for again by each reference.
            self._failed[None] = str(error)
            raise
        try:
            found = self._read(path)
        except StoreError as error:
            self._failed[path] = str(error)
            raise
        return {key: _text(value) for key, value in found.items() if value is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def first(params: Mapping[str, str], *names: str) -> str:
    """The value of the first parameter that is given; several providers have several names for one thing."""
    return next((params[name].strip() for name in names if params.get(name, "").strip()), "")
