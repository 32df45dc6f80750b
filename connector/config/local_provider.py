"""Providers of secrets that read what this machine has: variables, files, folders; and what each may read.

In: the parameters that a worker's file gives to one. Out: a ``LocalProvider``, which answers references; ``Problem``s
of its parameters. Who defines connectors over HTTP reads by references what the service can read, and no more than
these parameters allow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from connector.config.contents import file_content, why_unreadable
from connector.config.java_properties import java_properties
from connector.config.properties import Invalid, java_pattern
from connector.errors import Problem

#: Kafka's names of what limits a provider, by its kind.
_PATHS: Final = "allowed.paths"
_NAMES: Final = "allowlist.pattern"
LIMITS: Final = {"env": _NAMES, "file": _PATHS, "directory": _PATHS}
#: What a reference with one part lacks.
_PARTS: Final = {"file": "key, or no file", "directory": "file, or no folder"}
_NO_PATH: Final = "a variable has neither a path nor a default: ${env:NAME}"


@dataclass(frozen=True, slots=True)
class LocalProvider:
    """``paths``: files, and folders with all that is below them; ``names``: of variables. None is no limit."""

    kind: Literal["env", "file", "directory"]
    paths: tuple[Path, ...] | None = None
    names: re.Pattern[str] | None = None

    @property
    def limited(self) -> bool:
        return self.paths is not None or self.names is not None

    def look_up(self, path: str, key: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
        """The text, or why there is none."""
        found, why = self._looked_up(path, key, environ)
        if found is not None:
            return found, ""
        if "${" in path + key:
            # It ends at the first brace, as Kafka's does.
            return None, "a reference inside of another one is not resolved"
        return None, why

    def _looked_up(self, path: str, key: str, environ: Mapping[str, str]) -> tuple[str | None, str]:
        if self.kind == "env":
            if not key:
                return None, "it names no variable: ${env:NAME}"
            if self.names is not None and not self.names.fullmatch(key):
                return None, f"the environment variable {key} may not be read: {_NAMES} has no such name"
            why = f"the environment variable {key} is not set"
            return environ.get(key), f"{why}: {_NO_PATH}" if path else why
        if not path:
            return None, f"it names no {_PARTS[self.kind]}: ${{{self.kind}:/path:key}}"
        begin, colon, rest = path.partition(":")
        if not colon:
            return self._read(path, key)
        # A path of Kafka's ends at the first colon. One that has a colon itself is read where that gives nothing.
        found, why = self._read(begin, f"{rest}:{key}")
        return (found, why) if found is not None else (self._read(path, key)[0], why)

    def _read(self, path: str, key: str) -> tuple[str | None, str]:
        target = Path(path) / key if self.kind == "directory" else Path(path)
        if self.paths is not None:
            # What is asked about has to be what is opened, so no step upwards is left in it.
            target = Path(os.path.normpath(target))
            if not any(target.is_relative_to(allowed) for allowed in self.paths):
                return None, f"the file {target} may not be read: it is not below any of {_PATHS}"
        lacks = f"it names no {'key' if self.kind == 'file' else 'file'} in {path}: ${{{self.kind}:{path}:key}}"
        if self.kind == "directory" and not key:
            return None, lacks
        try:
            content = file_content(target).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = why_unreadable(error) if isinstance(error, OSError) else "is not UTF-8 text"
            return None, f"the file {target} cannot be read: {reason}"
        if self.kind == "directory":
            return content.rstrip("\r\n"), ""
        try:
            return java_properties(content).get(key), f"the file {target} has no key {key}" if key else lacks
        except ValueError as error:
            return None, f"the file {target} cannot be read: {error}"


def limited(provider: LocalProvider, params: Mapping[str, str], prefix: str) -> tuple[LocalProvider, list[Problem]]:
    """The provider with the limits of its parameters, whose names begin with ``prefix``."""
    limit = LIMITS[provider.kind]
    text = params.get(limit, "")
    if not text:
        return provider, []
    if limit == _NAMES:
        try:
            return replace(provider, names=java_pattern(text)), []
        except Invalid as invalid:
            return provider, [Problem(prefix + limit, invalid.problem, text, invalid.suggestion)]
    paths = tuple(Path(os.path.normpath(item.strip() or ".")) for item in text.split(","))
    if any(not path.is_absolute() for path in paths):
        return provider, [
            Problem(prefix + limit, "Must be a list of absolute paths", text, "/opt/secrets,/run/secrets")
        ]
    return replace(provider, paths=paths), []
