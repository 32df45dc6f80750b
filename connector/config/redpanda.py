"""What Redpanda's image of Kafka Connect makes of its own variables: logins and certificates, named by their files.

In: a worker's variables. Out: the properties that the image would write for them, with the variable of each. From
https://docs.redpanda.com/current/deploy/kafka-connect/deploy-kafka-connect
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PASSWORDS = "/opt/kafka/connect-password"
_CERTIFICATES = "/opt/kafka/connect-certs"
#: Counts over `CONNECT_CONFIGURATION`.
ADDITIONAL = "CONNECT_ADDITIONAL_CONFIGURATION"
_TLS, _TRUSTED = "CONNECT_TLS_ENABLED", "CONNECT_TRUSTED_CERTS"
_USER, _PASSWORD = "CONNECT_SASL_USERNAME", "CONNECT_SASL_PASSWORD_FILE"
_CHAIN, _KEY = "CONNECT_TLS_AUTH_CERT", "CONNECT_TLS_AUTH_KEY"
#: Whoever has one of these runs that image.
_TELLING = frozenset((_TLS, _PASSWORD, _TRUSTED, _CHAIN, _KEY, ADDITIONAL))
#: What the image does not write into a worker's file as it stands.
OF_THE_IMAGE = _TELLING | {"CONNECT_METRICS_ENABLED", "CONNECT_LOG4J_CONFIGURATION"}


def is_of_redpanda(variables: Mapping[str, str]) -> bool:
    return any(variables.get(name, "").strip() for name in _TELLING)


def redpanda_properties(variables: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Property → (variable, text); files are references."""

    def given(name: str) -> str:
        return variables.get(name, "").strip()

    found: dict[str, tuple[str, str]] = {}
    tls, login = given(_TLS).lower() == "true", bool(given(_USER) and given(_PASSWORD))
    if tls or login:
        protocol = ("SASL_" if login else "") + ("SSL" if tls else "PLAINTEXT")
        found["security.protocol"] = (_TLS if tls else _PASSWORD, protocol)
    if login:
        found["sasl.username"] = (_USER, given(_USER))
        found["sasl.password"] = (_PASSWORD, _content(_PASSWORDS, given(_PASSWORD)))
    if tls and given(_TRUSTED):
        trusted = "\n".join(
            _content(_CERTIFICATES, each.strip()) for each in given(_TRUSTED).split(";") if each.strip()
        )
        found["ssl.truststore.type"] = (_TRUSTED, "PEM")
        found["ssl.truststore.certificates"] = (_TRUSTED, trusted)
    if tls and given(_CHAIN) and given(_KEY):
        found["ssl.keystore.type"] = (_CHAIN, "PEM")
        found["ssl.keystore.certificate.chain"] = (_CHAIN, _content(_CERTIFICATES, given(_CHAIN)))
        found["ssl.keystore.key"] = (_KEY, _content(_CERTIFICATES, given(_KEY)))
    for each in re.split(r"[,\n]", given(ADDITIONAL)):
        name, equals, text = each.partition("=")
        if equals:
            found[name.strip()] = (ADDITIONAL, text.strip())
    return found


def _content(directory: str, path: str) -> str:
    inside, _, name = f"{directory}/{path}".rpartition("/")
    return f"${{directory:{inside}:{name}}}"
