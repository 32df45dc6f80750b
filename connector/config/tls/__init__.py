"""Key stores, PEM files, and the TLS contexts made of them.

In: paths and passwords. Out: ``ssl.SSLContext``, or ``KeystoreError``; PEM text as a file, for libraries that want one.
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
from connector.config.tls.pem_file import PemFile

__all__ = [
    "Identity",
    "KeystoreError",
    "PemFile",
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
