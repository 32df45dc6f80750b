"""Key stores, PEM files, and the TLS contexts made of them.

In: paths and passwords. Out: ``ssl.SSLContext``, or ``KeystoreError``.
"""

from __future__ import annotations

from connector.config.tls.config import TlsConfig
from connector.config.tls.contexts import TlsMaterial, configured_context, server_context, tls_material
from connector.config.tls.keystores import (
    Identity,
    KeystoreError,
    openssl_cipher_name,
    pem_identity,
    read_certificates,
    read_identity,
    read_pem_identity,
    why_invalid_now,
)

__all__ = [
    "Identity",
    "KeystoreError",
    "TlsConfig",
    "TlsMaterial",
    "configured_context",
    "openssl_cipher_name",
    "pem_identity",
    "read_certificates",
    "read_identity",
    "read_pem_identity",
    "server_context",
    "tls_material",
    "why_invalid_now",
]
