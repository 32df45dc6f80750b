"""The source's settings from a connector's configuration, key stores read and TLS prepared."""

from __future__ import annotations

import os
import ssl
import tempfile

from connector.config import ConnectionConfig, ReadingConfig, TlsConfig
from connector.config.keystores import (
    Identity,
    openssl_cipher_name,
    read_certificates,
    read_identity,
    read_pem_identity,
)
from connector.source.settings import ConnectionSettings, ReadingSettings


def connection_settings(config: ConnectionConfig) -> ConnectionSettings:
    return ConnectionSettings(
        contact_points=tuple((point.host, point.port) for point in config.contact_points),
        user=config.user,
        password=config.password.reveal() if config.password else None,
        tls=tls_context(config.tls) if config.tls.enabled else None,
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
        retry_jitter_percent=round(config.backoff_jitter * 100),
    )


def tls_context(config: TlsConfig) -> ssl.SSLContext:
    """A client's context. Without a trust store the machine's own certificates are trusted, as in Java."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.check_host
    if config.truststore:
        context.load_verify_locations(cadata=read_certificates(config.truststore, config.truststore_password))
    else:
        context.load_default_certs()
    if config.cipher_suites:
        context.set_ciphers(":".join(openssl_cipher_name(name) for name in config.cipher_suites))
    if config.keystore:
        _load_identity(context, read_identity(config.keystore, config.keystore_password))
    elif config.certificate_chain and config.private_key:
        _load_identity(context, read_pem_identity(config.certificate_chain, config.private_key))
    return context


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    # OpenSSL takes a chain and its key from a file only: one that nobody else can read, for as long as it takes.
    handle, path = tempfile.mkstemp(prefix="scylla-cdc-", suffix=".pem")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(identity.certificates + identity.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
