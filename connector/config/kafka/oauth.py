"""OAuth logins of Java's Kafka clients (client credentials, signed assertions), as librdkafka takes them.

In: the ``sasl.*`` properties of one client and the options of its login module, Kafka's own or Strimzi's. Out:
librdkafka's properties, and problems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote_plus

from connector.config.tls import KeystoreError, read_certificates

OAUTH_NAMES = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.assertion.template.file",
)
#: Handlers whose work librdkafka does itself.
OAUTH_HANDLERS = ("OAuthBearerLoginCallbackHandler", "JaasClientOauthLoginCallbackHandler")

#: Called with a property's name, what is wrong, and what would be right.
Report = Callable[[str, str, str | None], None]

_CREDENTIALS = "client_credentials"
_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_GRANTS = {
    "DefaultJwtRetriever": _CREDENTIALS,
    "ClientCredentialsJwtRetriever": _CREDENTIALS,
    "JwtBearerJwtRetriever": _ASSERTION,
}
_URL = "sasl.oauthbearer.token.endpoint.url"
_TRUST = "ssl.truststore.location"


def translate_oauth(given: Mapping[str, str], options: Mapping[str, str], report: Report) -> dict[str, str]:
    """``options`` are those of ``sasl.jaas.config``."""
    if any(name.startswith("unsecuredLogin") for name in options):
        report("sasl.jaas.config", "Unsecured tokens are not supported", 'clientId="…" clientSecret="…"')
        return {}
    if given.get("sasl.oauthbearer.method") == "default" or "sasl.oauthbearer.config" in given:
        return {}  # librdkafka's own ways to a token, spelt out by the user
    grant = _grant(given, report)
    found = {"sasl.oauthbearer.method": "oidc"}
    if grant == _ASSERTION:
        found["sasl.oauthbearer.grant.type"] = grant
    found |= _client(given, options, grant, report)
    extensions = [f"{name[10:]}={value}" for name, value in options.items() if name.startswith("extension_")]
    if extensions:
        found["sasl.oauthbearer.extensions"] = ",".join(extensions)
    template = given.get("sasl.oauthbearer.assertion.template.file", "").strip()
    if template:
        found["sasl.oauthbearer.assertion.jwt.template.file"] = template
    url = given.get(_URL, options.get("oauth.token.endpoint.uri", "")).strip()
    if not url:
        report(_URL, "Is needed by OAUTHBEARER", "the address that gives out tokens")
    elif not url.lower().startswith(("http://", "https://")):
        report(_URL, "Tokens can only come from a server, not from a file", "an address that begins with https://")
    else:
        found[_URL] = url
    return found | _trust(options, report)


def _grant(given: Mapping[str, str], report: Report) -> str:
    name = "sasl.oauthbearer.jwt.retriever.class"
    retriever = given.get(name, "").strip().rsplit(".", 1)[-1]
    if retriever and retriever not in _GRANTS:
        report(name, "Classes of the JVM cannot be loaded here", "one of " + ", ".join(_GRANTS))
    native = given.get("sasl.oauthbearer.grant.type", "")
    asserted = "assertion" in native or "jwt-bearer" in native
    return _ASSERTION if asserted else _GRANTS.get(retriever, _CREDENTIALS)


def _client(given: Mapping[str, str], options: Mapping[str, str], grant: str, report: Report) -> dict[str, str]:
    sources = (
        ("sasl.oauthbearer.client.id", "clientId", "sasl.oauthbearer.client.credentials.client.id", "oauth.client.id"),
        (
            "sasl.oauthbearer.client.secret",
            "clientSecret",
            "sasl.oauthbearer.client.credentials.client.secret",
            "oauth.client.secret",
        ),
        ("sasl.oauthbearer.scope", "scope", "sasl.oauthbearer.scope", "oauth.scope"),
    )
    # As in Java, for servers that want the two encoded inside the header of the request.
    encoded = given.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true"
    found = {}
    for target, option, name, strimzis in sources:
        value = options.get(option) or options.get(strimzis) or given.get(name) or given.get(target)
        if value is not None:
            found[target] = quote_plus(value) if encoded and option != "scope" else value
        elif option != "scope" and grant == _CREDENTIALS:
            report("sasl.jaas.config", f"Has no {option}", 'clientId="…" clientSecret="…"')
    return found


def _trust(options: Mapping[str, str], report: Report) -> dict[str, str]:
    """Whom to trust at the address of the tokens: the login module has options of its own for it."""
    path = options.get(_TRUST) or options.get(f"oauth.{_TRUST}")
    if not path:
        return {}
    password = options.get("ssl.truststore.password") or options.get("oauth.ssl.truststore.password")
    try:
        return {"https.ca.pem": read_certificates(path, password)}
    except KeystoreError as error:
        report("sasl.jaas.config", f"ssl.truststore.{error.about}: {error}", error.remedy)
        return {}
