"""Declarations: the HTTP port of `run`, by the names that Kafka Connect's REST listeners have."""

from __future__ import annotations

from connector.config.properties.kind import LIST, PASSWORD, STRING, one_of
from connector.config.properties.property import Property, Section, without_effect

_TLS = "listeners.https.ssl."

HTTP = Section(
    "HTTP port",
    "For the port that `run --http-port` opens. With a key store it speaks TLS.",
    (
        Property(
            "rest.bearer.token",
            PASSWORD,
            "If given, requests need `Authorization: Bearer <token>`, or it as the password of any name (`Basic`), but "
            "for `/live` and `/ready`. Best as "
            "`${env:NAME}` or `${directory:/run/secrets:token}`; a line break at its end does not count.",
            ours=True,
        ),
        Property(f"{_TLS}keystore.location", STRING, "The server's certificate and key: JKS, PKCS12 or PEM."),
        Property(f"{_TLS}keystore.password", PASSWORD, "Its password."),
        Property(f"{_TLS}key.password", PASSWORD, "Password of the key, if it is not that of the key store."),
        Property(
            f"{_TLS}keystore.certificate.chain",
            STRING,
            f"Instead of a file: the certificates as PEM text; needs `{_TLS}keystore.key`.",
        ),
        Property(f"{_TLS}keystore.key", PASSWORD, "The key as PEM text."),
        Property(
            f"{_TLS}client.auth",
            one_of("none", "requested", "required"),
            "Whether clients must show a certificate. With `required`, probes of Kubernetes need `exec`.",
            default="none",
        ),
        Property(f"{_TLS}truststore.location", STRING, "The authorities that certificates of clients come from."),
        Property(f"{_TLS}truststore.password", PASSWORD, "Its password."),
        Property(f"{_TLS}truststore.certificates", STRING, "Instead of a file: the authorities as PEM text."),
        Property(f"{_TLS}cipher.suites", LIST, "Cipher suites of TLS 1.2, by their Java or OpenSSL names.", default=()),
        *without_effect(
            "stores are recognised by their content, and TLS 1.2 and 1.3 are spoken",
            (f"{_TLS}keystore.type", f"{_TLS}truststore.type", f"{_TLS}protocol", f"{_TLS}enabled.protocols"),
        ),
        *without_effect(
            "it is a class or an algorithm of the JVM",
            tuple(
                _TLS + name
                for name in (
                    *("provider", "secure.random.implementation", "keymanager.algorithm", "trustmanager.algorithm"),
                    *("engine.factory.class", "endpoint.identification.algorithm"),
                    *("allow.dn.changes", "allow.san.changes"),
                )
            ),
        ),
    ),
)
