"""Who may ask: a bearer token, TLS, or everybody who reaches the port.

In: what is configured. Out: whether a request shows the token, and what is to be said of an open port.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import ssl
from dataclasses import dataclass

from connector.config import Secret


@dataclass(frozen=True, slots=True)
class Access:
    """``tls`` None: plain HTTP. With ``token``, requests need ``Authorization: Bearer …``, or have it as a password:
    most tools that ask Kafka Connect know nothing else."""

    token: Secret | None = None
    tls: ssl.SSLContext | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.tls else "http"

    def allows(self, authorization: str | None) -> bool:
        """Compared in constant time, whatever the lengths."""
        if not self.token:
            return True
        kind, _, given = (authorization or "").strip().partition(" ")
        known = hashlib.sha256(self.token.reveal().strip().encode(errors="replace")).digest()
        token = _password(given) if kind.lower() == "basic" else given.strip().encode("latin-1", "replace")
        return hmac.compare_digest(known, hashlib.sha256(token).digest()) and kind.lower() in ("bearer", "basic")

    def may_write(self, address: str) -> bool:
        """Whether who asks from there, and was let in, may change anything: everybody whom a token or a certificate
        has let in, else this machine."""
        return bool(self.token) or self.asks_for_certificates or is_loopback(address)

    @property
    def asks_for_certificates(self) -> bool:
        return self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED


def _password(login: str) -> bytes:
    """Of ``name:password`` in base 64; names may be any."""
    try:
        return base64.b64decode(login.strip().encode("latin-1", "replace"), validate=True).partition(b":")[2].strip()
    except ValueError:
        return b""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # A socket that listens on `::` sees IPv4 clients as ::ffff:127.0.0.1.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
