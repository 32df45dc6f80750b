"""``TlsConfig``: which stores and which rules a TLS connection uses.

In: parsed values, or members by name. Out: a frozen model; its stores are paths, which ``keystores`` reads.
"""

from __future__ import annotations

from pydantic import InstanceOf

from connector.config.part import OrNone, Part, of
from connector.config.secret import Secret

_Password = InstanceOf[Secret]


class TlsConfig(Part):
    """TLS to ScyllaDB by its properties; to a Schema Registry by members."""

    enabled: bool = of("scylla.ssl.enabled", default=False)
    truststore: OrNone[str] = of("scylla.ssl.truststore.path", default=None)
    truststore_password: _Password | None = of("scylla.ssl.truststore.password", default=None)
    keystore: OrNone[str] = of("scylla.ssl.keystore.path", default=None)
    keystore_password: _Password | None = of("scylla.ssl.keystore.password", default=None)
    key_password: _Password | None = None
    certificate_chain: OrNone[str] = of("scylla.ssl.openssl.keyCertChain", default=None)
    private_key: OrNone[str] = of("scylla.ssl.openssl.privateKey", default=None)
    cipher_suites: tuple[str, ...] = of("scylla.ssl.cipherSuites", default=())
    check_host: bool = of("scylla.ssl.hostname.verification", default=False)

    @property
    def warning(self) -> str | None:
        """What is to be known of a connection that anybody with some certificate could take over."""
        if not self.enabled or self.check_host or self.truststore:
            return None
        return (
            "certificates of every authority that this system trusts are taken, for whatever host: set "
            "scylla.ssl.truststore.path to ScyllaDB's own authority, or scylla.ssl.hostname.verification=true"
        )
