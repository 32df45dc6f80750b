"""TLS contexts: for the connections that Python makes itself (ScyllaDB, a Schema Registry), and for its own HTTP port.

In: configured stores. Out: ``ssl.SSLContext``. A store that cannot be used raises ``KeystoreError``.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from connector.config.tls.config import TlsConfig
from connector.config.tls.keystores import (
    Identity,
    KeystoreError,
    openssl_cipher_name,
    read_certificates,
    read_identity,
    read_pem_identity,
)
from connector.config.tls.pem_file import PemFile


def tls_context(
    certificates: str | None, identity: Identity | None, *, check_host: bool, ciphers: tuple[str, ...] = ()
) -> ssl.SSLContext:
    """A client's context that trusts ``certificates`` (None: the system's) and shows ``identity``."""
    try:
        context = ssl.create_default_context(cadata=certificates)
    except ssl.SSLError as error:
        raise KeystoreError(f"The trusted certificates cannot be used: {error.reason}") from None
    # A certificate of the trust store itself may be a node's own or an intermediate one, as Java allows.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Since Python 3.13 the default refuses certificates that Java's tools have issued for years.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.check_hostname = check_host
    if identity:
        _load_identity(context, identity)
    _choose(ciphers, context)
    return context


def server_context(
    identity: Identity, trusted: str | None, client_auth: str, ciphers: tuple[str, ...] = ()
) -> ssl.SSLContext:
    """A server's context that shows ``identity``; ``client_auth`` is none, requested or required."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_identity(context, identity)
    if trusted:
        try:
            context.load_verify_locations(cadata=trusted)
        except (ssl.SSLError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise KeystoreError(f"The trusted certificates cannot be used: {reason}") from None
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    modes = {"required": ssl.CERT_REQUIRED, "requested": ssl.CERT_OPTIONAL}
    context.verify_mode = modes.get(client_auth, ssl.CERT_NONE)
    _choose(ciphers, context)
    return context


def _choose(ciphers: tuple[str, ...], context: ssl.SSLContext) -> None:
    if ciphers:
        try:
            context.set_ciphers(":".join(openssl_cipher_name(name) for name in ciphers))
        except ssl.SSLError:
            raise KeystoreError("None of the cipher suites is known to OpenSSL", "ciphers") from None


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    """Python takes a key from files only: it stands in one for this moment."""
    try:
        with PemFile(identity.key + identity.certificates) as file:
            context.load_cert_chain(file.path)
    except ssl.SSLError as error:
        raise KeystoreError(f"Certificate and private key do not belong together: {error.reason}", "key") from None


@dataclass(frozen=True, slots=True, repr=False)
class TlsMaterial:
    """What TLS needs, read from its files: a process elsewhere can make a context of it."""

    certificates: str | None
    identity: Identity | None
    check_host: bool
    ciphers: tuple[str, ...]

    def context(self) -> ssl.SSLContext:
        return tls_context(self.certificates, self.identity, check_host=self.check_host, ciphers=self.ciphers)


def tls_material(tls: TlsConfig) -> TlsMaterial | None:
    """The contents of the configured stores, None where TLS is off."""
    if not tls.enabled:
        return None
    certificates = read_certificates(tls.truststore, tls.truststore_password) if tls.truststore else None
    identity = None
    if tls.keystore:
        identity = read_identity(tls.keystore, tls.keystore_password, tls.key_password)
    elif tls.certificate_chain and tls.private_key:
        identity = read_pem_identity(tls.certificate_chain, tls.private_key)
    return TlsMaterial(certificates, identity, tls.check_host, tls.cipher_suites)


def configured_context(tls: TlsConfig) -> ssl.SSLContext | None:
    """The context for such connections, None where TLS is off."""
    material = tls_material(tls)
    return material.context() if material else None
