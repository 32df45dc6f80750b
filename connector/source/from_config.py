"""The source's settings from a connector's configuration, key stores read and TLS prepared."""

from __future__ import annotations

from connector.config import ConnectionConfig, ReadingConfig, TlsMaterial, configured_context
from connector.source.settings import ConnectionSettings, ReadingSettings, SnapshotSettings


def connection_settings(config: ConnectionConfig, material: TlsMaterial | None = None) -> ConnectionSettings:
    """``material``: the contents of the key stores, where they cannot be read here but were read elsewhere."""
    return ConnectionSettings(
        contact_points=tuple((point.host, point.port) for point in config.contact_points),
        user=config.user,
        password=config.password.reveal() if config.password else None,
        tls=material.context() if material else configured_context(config.tls),
        verify_host_name=config.tls.check_host,
        local_dc=config.local_dc,
        consistency=config.consistency_level,
        fetch_size=config.fetch_size,
        request_timeout=config.request_timeout_ms / 1000,
    )


def reading_settings(config: ReadingConfig) -> ReadingSettings:
    return ReadingSettings(
        confidence_ms=config.confidence_ms,
        window_ms=config.window_ms,
        minimal_wait_ms=config.minimal_wait_ms,
        max_queries_per_second=config.max_queries_per_second,
        max_in_flight=config.max_queries_in_flight,
        in_query={"auto": None, "group": True, "stream": False}[config.query_mode],
        retry_base_ms=config.backoff_base_ms,
        retry_max_ms=config.backoff_max_ms,
        retry_jitter_percent=config.backoff_jitter_percent,
    )


def snapshot_settings(config: ReadingConfig, dated: bool) -> SnapshotSettings:
    return SnapshotSettings(
        max_queries_per_second=config.snapshot_queries_per_second,
        clocks_apart_ms=config.confidence_ms // 4,
        dated=dated,
    )
