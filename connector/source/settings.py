"""What the source room needs to know: a frozen value, so that this room never sees a configuration file."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """What is enough for one read of rows, in rows or bytes."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach the cluster."""

    contact_points: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None
    verify_host_name: bool = False
    local_dc: str | None = None
    consistency: str = "QUORUM"
    fetch_size: int = 5_000
    request_timeout: float = 30.0

    def __repr__(self) -> str:  # a password has no business in a log
        points = ",".join(f"{host}:{port}" for host, port in self.contact_points)
        return f"ConnectionSettings({points}, user={self.user!r}, tls={self.tls is not None})"


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How to read logs. All times in milliseconds.

    ``confidence_ms``: younger rows are left alone, since an older one may still become visible.
    ``window_ms``: the width of a window, which matters only while windows hold more than one page.
    ``grace_ms``: so long after its end a closed stream is looked at once more, and again after four times as long, for
    changes of nodes that learnt of it late (None: as long as the confidence window, at least 10 s).
    ``minimal_wait_ms``: least pause between two reads of one group.
    ``windows_ahead``: so many windows of a group with much to read are read before their turn, where nobody else wants
    the places.
    ``sweeps``: silent groups share a query.
    ``in_query``: read a group of streams with one IN query (True), stream by stream (False), or decide by the group's
    size (None).
    """

    confidence_ms: int = 30_000
    grace_ms: int | None = None
    window_ms: int = 30_000
    minimal_wait_ms: int = 0
    max_queries_per_second: float = 500.0
    max_in_flight: int = 64
    windows_ahead: int = 4
    sweeps: bool = True
    in_query: bool | None = None
    retry_base_ms: int = 50
    retry_max_ms: int = 30_000
    retry_jitter_percent: int = 20

    @property
    def poll_seconds(self) -> float:
        """How often stream sets are asked for: half the confidence, since reading waits for the freshest answer."""
        return max(0.2, min(self.confidence_ms / 2_000, 10.0))


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """How to read the rows of tables. What is read waits in memory until its place has come: ``max_bytes`` of it.

    ``clocks_apart_ms``: what is written has a time at most so far ahead of the servers' clocks as they were seen.
    ``dated``: the times of each cell are read as well."""

    max_queries_per_second: float = 50.0
    dated: bool = False
    clocks_apart_ms: int = 0
    max_bytes: int = 64 << 20
    chunk: ChunkSize = ChunkSize(5_000, 4 << 20)
