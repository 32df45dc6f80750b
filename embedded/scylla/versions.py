"""The release lines of ScyllaDB that the double can be like: what each offers to clients in SUPPORTED.

In: a line's name (`2026.1`) and extensions to leave out. Out: a frozen `Version`, which the handshake, prepared
statements and the system tables ask; a node may have another one than its neighbours, as during an upgrade.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from connector.errors import EmbeddedError

LWT_MARK: Final = "SCYLLA_LWT_ADD_METADATA_MARK"
RATE_LIMIT: Final = "SCYLLA_RATE_LIMIT_ERROR"
TABLETS_ROUTING: Final = "TABLETS_ROUTING_V1"
METADATA_ID: Final = "SCYLLA_USE_METADATA_ID"
CLIENT_OPTIONS: Final = "CLIENT_OPTIONS"
SHARD_AWARE_PORT: Final = "SCYLLA_SHARD_AWARE_PORT"

# What a client may find in SUPPORTED and act upon, by what it is offered with.
_VALUES: Final = {
    LWT_MARK: "LWT_OPTIMIZATION_META_BIT_MASK=2147483648",
    RATE_LIMIT: "ERROR_CODE=61440",
    TABLETS_ROUTING: "",
    METADATA_ID: "",
    CLIENT_OPTIONS: "",
}


@dataclass(frozen=True, slots=True)
class Version:
    """One release line. ``release`` is its first release, as `system.versions` shows it."""

    line: str
    release: str
    offered: frozenset[str]

    def offers(self, extension: str) -> bool:
        return extension in self.offered

    def since(self, line: str) -> bool:
        """Whether this is that line or a later one."""
        return self.line >= line

    def options(self) -> dict[str, list[str]]:
        """The entries of SUPPORTED that depend on the version."""
        return {name: [value] for name, value in _VALUES.items() if name in self.offered}

    def without(self, extensions: Iterable[str]) -> Version:
        """The same but for some of what it offers. What it does not offer can be left out, too."""
        left_out = list(extensions)
        for name in left_out:
            if name not in EXTENSIONS:
                raise EmbeddedError(f"there is no extension {name}; those of ScyllaDB are {', '.join(EXTENSIONS)}")
        return replace(self, offered=self.offered - set(left_out))


_FIRST: Final = frozenset({LWT_MARK, RATE_LIMIT, TABLETS_ROUTING, SHARD_AWARE_PORT})
# ScyllaDB's transport/server.cc and cql_protocol_extension.cc, on the branch of each line.
VERSIONS: Final = {
    version.line: version
    for version in (
        Version("2025.1", "2025.1.0", _FIRST),
        Version("2025.2", "2025.2.0", _FIRST),
        Version("2025.3", "2025.3.0", _FIRST | {METADATA_ID}),
        Version("2025.4", "2025.4.0", _FIRST | {METADATA_ID}),
        Version("2026.1", "2026.1.0", _FIRST | {METADATA_ID, CLIENT_OPTIONS}),
    )
}
NEWEST: Final = max(VERSIONS)
EXTENSIONS: Final = tuple(sorted(VERSIONS[NEWEST].offered))


def version_like(line: str, without: Iterable[str] = ()) -> Version:
    """The line of that name. One release of it (`2025.4.3`) names it too."""
    found = VERSIONS.get(".".join(line.split(".")[:2]))
    if found is None:
        raise EmbeddedError(f"there is no version {line} to be like; known are {', '.join(VERSIONS)}")
    return found.without(without)
