"""``HttpConfig``: who may ask the HTTP port of `scylla-cdc run`, and how it is encrypted.

In: parsed values of the worker's file, by the names that Kafka Connect's REST listeners have. Out: a frozen model; the
server's TLS context, made of its stores.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import InstanceOf

from connector.config.document import Document
from connector.config.findings import Findings
from connector.config.part import OrNone, Part, of
from connector.config.properties import HTTP
from connector.config.secret import Secret
from connector.config.tls import (
    Identity,
    KeystoreError,
    pem_identity,
    read_certificates,
    read_identity,
    server_context,
    why_invalid_now,
)

_Password = InstanceOf[Secret]
_TLS = "listeners.https.ssl."


class HttpConfig(Part):
    """TLS is on when there is a key store."""

    token: OrNone[_Password] = of("rest.bearer.token", default=None)
    keystore: OrNone[str] = of(f"{_TLS}keystore.location", default=None)
    keystore_password: OrNone[_Password] = of(f"{_TLS}keystore.password", default=None)
    key_password: OrNone[_Password] = of(f"{_TLS}key.password", default=None)
    certificate_chain: OrNone[str] = of(f"{_TLS}keystore.certificate.chain", default=None)
    private_key: OrNone[_Password] = of(f"{_TLS}keystore.key", default=None)
    truststore: OrNone[str] = of(f"{_TLS}truststore.location", default=None)
    truststore_password: OrNone[_Password] = of(f"{_TLS}truststore.password", default=None)
    trusted: OrNone[str] = of(f"{_TLS}truststore.certificates", default=None)
    client_auth: Literal["none", "requested", "required"] = of(f"{_TLS}client.auth", default="none")
    cipher_suites: tuple[str, ...] = of(f"{_TLS}cipher.suites", default=())

    @property
    def encrypted(self) -> bool:
        return bool(self.keystore or self.certificate_chain)

    def tls(self) -> ssl.SSLContext | None:
        """The server's side of TLS, None for plain HTTP; raises ``KeystoreError``."""
        if not self.encrypted:
            return None
        return server_context(self._identity(), self._trusted(), self.client_auth, self.cipher_suites)

    def why_refused(self) -> str | None:
        """Why clients that check certificates refuse to be served; what they say of it is not heard here."""
        return why_invalid_now(self._identity()) if self.encrypted else None

    def _identity(self) -> Identity:
        if self.keystore:
            return read_identity(self.keystore, self.keystore_password, self.key_password)
        chain, key = self.certificate_chain or "", self.private_key.reveal() if self.private_key else ""
        password = self.key_password.reveal() if self.key_password else None
        return pem_identity(chain.encode(), key.encode(), password, f"{_TLS}keystore.certificate.chain")

    def _trusted(self) -> str | None:
        if self.trusted:
            return self.trusted
        return read_certificates(self.truststore, self.truststore_password) if self.truststore else None


def check_http(document: Document, values: Mapping[str, Any], findings: Findings) -> None:
    """The rules between these properties; stores are opened now, not when the port is."""
    if document.broken & {one.name for one in HTTP.properties}:
        return
    config = HttpConfig.made_of(values)
    chain, key = f"{_TLS}keystore.certificate.chain", f"{_TLS}keystore.key"
    if bool(config.certificate_chain) != bool(config.private_key):
        missing, present = (key, chain) if config.certificate_chain else (chain, key)
        findings.problem(document, missing, f"{present} cannot be used without {missing}")
    elif config.keystore and config.certificate_chain:
        findings.problem(document, chain, f"The certificate is given twice, here and in {_TLS}keystore.location")
    elif not config.encrypted:
        for name in document.texts:
            if name.startswith(_TLS) and document.texts[name].strip():
                text = f"has no effect here: without {_TLS}keystore.location the port is not encrypted"
                findings.notice(document, name, text)
    elif config.client_auth != "none" and not (config.truststore or config.trusted):
        what = f"Needs {_TLS}truststore.location: the authorities whose clients are admitted"
        findings.problem(document, f"{_TLS}client.auth", what)
    else:
        try:
            config.tls()
        except KeystoreError as error:
            findings.problem(document, _TLS + _about(config, error), str(error), error.remedy)
    if config.token is not None and not config.token.reveal().strip().isprintable():
        findings.problem(document, "rest.bearer.token", "Must be one line of printable characters", secret=True)


def _about(config: HttpConfig, error: KeystoreError) -> str:
    if error.about == "ciphers":
        return "cipher.suites"
    try:
        config._identity()
    except KeystoreError:
        return {"password": "keystore.password", "key": "key.password"}.get(error.about, _given(config, "keystore"))
    return "truststore.password" if error.about == "password" else _given(config, "truststore")


def _given(config: HttpConfig, which: str) -> str:
    if which == "keystore":
        return "keystore.location" if config.keystore else "keystore.certificate.chain"
    return "truststore.certificates" if config.trusted else "truststore.location"
