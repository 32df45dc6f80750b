"""Certificates for tests, made on the spot: an authority, a server on loopback, clients."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from connector.config.tls import Identity, server_context
from connector.config.tls.contexts import tls_context


class Authority:
    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        self.certificate = self._signed(
            self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None)
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def identity(self, name: str, days: tuple[int, int] = (-1, 1)) -> Identity:
        """``days``: from and until when it is valid, counted from today."""
        key = ec.generate_private_key(ec.SECP256R1())
        places = x509.SubjectAlternativeName(
            [
                x509.DNSName("localhost"),
                x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                x509.IPAddress(ipaddress.ip_address("::1")),
            ]
        )
        certificate = self._signed(_name(name), key.public_key(), places, days)
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Identity(certificate.public_bytes(serialization.Encoding.PEM).decode(), text.decode())

    def server_context(self, client_auth: str = "none") -> ssl.SSLContext:
        return server_context(self.identity("server"), self.pem, client_auth)

    def client_context(self, name: str | None = None, trusting: Authority | None = None) -> ssl.SSLContext:
        identity = self.identity(name) if name else None
        return tls_context((trusting or self).pem, identity, check_host=True)

    def _signed(
        self, name: x509.Name, key: Any, extension: x509.ExtensionType, days: tuple[int, int] = (-1, 1)
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
