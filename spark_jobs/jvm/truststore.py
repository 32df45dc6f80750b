"""Writes the machine's trusted certificates as a store that Java reads.

Python's tools are told about a company's own CA by `SSL_CERT_FILE` and its kin; a Java that came in a wheel knows only
its own. In go those PEM files, out comes a PKCS12 file and the options that make a JVM use it.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import warnings
from dataclasses import dataclass
from pathlib import Path

_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE")
# The store holds public certificates only; Java insists on a password and this is the one it documents.
_PASSWORD = "changeit"
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TrustStore:
    path: Path

    def java_options(self) -> list[str]:
        return [
            f"-Djavax.net.ssl.trustStore={self.path}",
            f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
            "-Djavax.net.ssl.trustStoreType=PKCS12",
        ]


def write_trust_store(path: Path) -> TrustStore | None:
    """All certificates of the PEM files the environment names and of the system's own; None when there are none."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    certificates: dict[bytes, x509.Certificate] = {}
    for source in _sources():
        for block in _PEM.findall(source.read_bytes()):
            # System bundles contain relics that a strict parser refuses; the others are still good.
            with contextlib.suppress(ValueError), warnings.catch_warnings(action="ignore"):
                certificate = x509.load_pem_x509_certificate(block)
                certificates[certificate.fingerprint(hashes.SHA256())] = certificate
    if not certificates:
        return None
    entries = [
        pkcs12.PKCS12Certificate(certificate, f"ca-{number}".encode())
        for number, certificate in enumerate(certificates.values())
    ]
    encryption = BestAvailableEncryption(_PASSWORD.encode())
    path.write_bytes(pkcs12.serialize_java_truststore(entries, encryption))
    return TrustStore(path)


def _sources() -> list[Path]:
    named = [os.environ.get(variable) for variable in _VARIABLES]
    named.append(ssl.get_default_verify_paths().cafile)
    paths = {Path(name).resolve() for name in named if name}
    return sorted(path for path in paths if path.is_file() and path.stat().st_size > 0)
