"""How a Schema Registry is reached: addresses, certificates, a proxy, and the login of each request.

In: the options of a converter, and the ``sasl.*`` of the worker for those who inherit its login. Out: a
``RegistryConfig``, or what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from connector.config.kafka.security import JaasError, parse_jaas
from connector.config.properties import PASSWORD, STRING, Invalid, Kind, Property, integer, one_of, without_effect
from connector.config.secret import Secret
from connector.config.tls import TlsConfig


def _urls(text: str) -> tuple[str, ...]:
    urls = tuple(item.strip().rstrip("/") for item in text.split(",") if item.strip())
    if not urls and text.strip():
        raise Invalid("Names no address", "http://127.0.0.1:8081")
    for url in urls:
        if "@" in url.rpartition("//")[2].partition("/")[2].partition("?")[0]:
            raise Invalid("Has an @ after a slash", "in a password write / as %2F, ? as %3F, # as %23 and @ as %40")
        if not _is_address(url):
            raise Invalid("Must be a list of http or https addresses", "http://127.0.0.1:8081")
    return urls


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no number, or brackets that do not close
        return False


URLS = Kind("list of URLs", _urls)


_HTTP_PORTS: Final = integer(1, 65535)
_ENDPOINT: Final = "bearer.auth.issuer.endpoint.url"
_CLIENT: Final = ("bearer.auth.client.id", "bearer.auth.client.secret")
_JAAS: Final = "sasl.jaas.config"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"


def _endpoint(text: str) -> str:
    address = text.strip()
    if not _is_address(address) or "@" in urlsplit(address).netloc:
        raise Invalid("Must be one http or https address without a login", "https://login.example.com/oauth2/token")
    return address


ENDPOINT: Final = Kind("URL", _endpoint)

REGISTRY_OPTIONS: Final = (
    Property(
        "schema.registry.url",
        URLS,
        "Schema Registry; several addresses are tried in turn.",
        required='Missing required configuration "schema.registry.url" which has no default value',
    ),
    Property("proxy.host", STRING, "HTTP proxy through which the registry is reached."),
    Property("proxy.port", _HTTP_PORTS, "Its port."),
    Property(
        "basic.auth.credentials.source",
        one_of("URL", "USER_INFO", "SASL_INHERIT"),
        "Where to find user and password: in the URL, in `basic.auth.user.info`, or in `sasl.jaas.config` of the "
        "converter or of the worker.",
        default="URL",
    ),
    Property(
        "basic.auth.user.info",
        PASSWORD,
        "`user:password`.",
        aliases=("schema.registry.basic.auth.user.info",),
    ),
    Property(
        "bearer.auth.credentials.source",
        one_of("STATIC_TOKEN", "OAUTHBEARER", "SASL_OAUTHBEARER_INHERIT", "USER_INFO"),
        "`STATIC_TOKEN` takes `bearer.auth.token`. `OAUTHBEARER` gets tokens from `bearer.auth.issuer.endpoint.url`, "
        "`SASL_OAUTHBEARER_INHERIT` with the login that `sasl.jaas.config` and `sasl.oauthbearer.token.endpoint.url` "
        "name, in the converter or else in the worker.",
    ),
    Property("bearer.auth.token", PASSWORD, "Token sent with each request."),
    Property(_ENDPOINT, ENDPOINT, "OAuth: address that gives out tokens for client credentials."),
    Property("bearer.auth.client.id", STRING, "OAuth: the client."),
    Property("bearer.auth.client.secret", PASSWORD, "OAuth: its secret."),
    Property("bearer.auth.scope", STRING, "OAuth: scopes asked for, with blanks between them."),
    Property(
        "bearer.auth.logical.cluster", STRING, "Confluent Cloud: the registry's `lsrc-…`, sent with each request."
    ),
    Property("bearer.auth.identity.pool.id", STRING, "Confluent Cloud: the pool's `pool-…`, sent with each request."),
    Property(
        "bearer.auth.cache.expiry.buffer.seconds",
        integer(0),
        "OAuth: how long before its end a token is replaced.",
        default=300,
    ),
    *without_effect(
        "tokens are passed on, not looked into", ("bearer.auth.scope.claim.name", "bearer.auth.sub.claim.name")
    ),
    Property(_JAAS, PASSWORD, "The login that `SASL_INHERIT` and `SASL_OAUTHBEARER_INHERIT` take; else the worker's."),
    Property(_TOKEN_URL, ENDPOINT, "With `SASL_OAUTHBEARER_INHERIT`: address of tokens; else the worker's."),
    *without_effect("the source of the login says it", ("sasl.mechanism",)),
    Property("schema.registry.ssl.truststore.location", STRING, "Trusted certificates: JKS, PKCS12 or PEM."),
    Property("schema.registry.ssl.truststore.password", PASSWORD, "Its password."),
    Property("schema.registry.ssl.keystore.location", STRING, "Client certificate and key: JKS, PKCS12 or PEM."),
    Property("schema.registry.ssl.keystore.password", PASSWORD, "Its password."),
    Property("schema.registry.ssl.key.password", PASSWORD, "Password of the key, if it has its own."),
    Property(
        "schema.registry.ssl.endpoint.identification.algorithm",
        STRING,
        "`https` checks the host name, empty does not.",
        default="https",
    ),
    *without_effect(
        "the type of a store is detected by its content",
        ("schema.registry.ssl.truststore.type", "schema.registry.ssl.keystore.type"),
    ),
    *without_effect(
        "a request waits 10 s and is tried again", ("http.connect.timeout.ms", "http.read.timeout.ms"), integer(0)
    ),
    *without_effect(
        "a request waits 10 s and is tried again", ("max.retries", "retries.wait.ms", "retries.max.wait.ms"), integer(0)
    ),
)

_CHECKED = TlsConfig(enabled=True, check_host=True)


@dataclass(frozen=True, slots=True)
class OauthLogin:
    """The client credentials with which tokens are asked for; one is replaced ``early_seconds`` before its end."""

    endpoint: str
    client_id: str
    client_secret: Secret
    scope: str = ""
    early_seconds: int = 300


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """How a Schema Registry is reached; ``tls`` counts for its https URLs and for those of tokens."""

    urls: tuple[str, ...]
    user_info: Secret | None = None
    token: Secret | None = None
    tls: TlsConfig = _CHECKED
    oauth: OauthLogin | None = None
    proxy: tuple[str, int] | None = None
    proxy_user: Secret | None = None
    #: Sent with each request.
    headers: Mapping[str, str] = field(default_factory=dict)


class Objection(NamedTuple):
    """What is wrong with an option."""

    option: str
    problem: str
    suggestion: str | None = None
    secret: bool = False


def without_logins(urls: tuple[str, ...]) -> tuple[tuple[str, ...], Secret | None]:
    """Addresses without ``user:password@``, and the first such login."""
    bare, login = [], None
    for url in urls:
        parts = urlsplit(url)
        user, found, host = parts.netloc.rpartition("@")
        bare.append(parts._replace(netloc=host).geturl())
        if found and login is None:
            login = Secret(unquote(user))
    return tuple(bare), login


def _in_header(secret: Secret | None) -> Secret | None:
    """Files of secrets end with a line break, which is no part of them and which no HTTP header can carry."""
    return Secret(secret.reveal().strip()) if secret else None


def registry_of(options: Mapping[str, Any], inherited: Mapping[str, str] | None = None) -> RegistryConfig:
    """What already parsed options mean; ``inherited`` are the worker's properties as text."""
    urls, login = without_logins(options["schema.registry.url"])
    source, basic = options["bearer.auth.credentials.source"], options["basic.auth.credentials.source"]
    if basic == "SASL_INHERIT":
        sasl = _login_module(options, inherited or {})
        login = Secret(f"{sasl.get('username', '')}:{sasl.get('password', '')}")
    headers = {
        "target-sr-cluster": options["bearer.auth.logical.cluster"],
        "Confluent-Identity-Pool-Id": options["bearer.auth.identity.pool.id"],
    }
    return RegistryConfig(
        urls=urls,
        # Connect's default source of a login is the URL; one that is given beside it is meant all the same.
        user_info=_in_header(options["basic.auth.user.info"]) or login,
        token=_in_header(options["bearer.auth.token"]),
        tls=TlsConfig(
            enabled=True,
            truststore=options["schema.registry.ssl.truststore.location"],
            truststore_password=options["schema.registry.ssl.truststore.password"],
            keystore=options["schema.registry.ssl.keystore.location"],
            keystore_password=options["schema.registry.ssl.keystore.password"],
            key_password=options["schema.registry.ssl.key.password"],
            check_host=options["schema.registry.ssl.endpoint.identification.algorithm"].lower() == "https",
        ),
        oauth=_oauth(source, options, inherited or {}),
        proxy=(options["proxy.host"], options["proxy.port"]) if options["proxy.host"] else None,
        headers={name: text for name, text in headers.items() if text},
    )


def _oauth(source: str | None, options: Mapping[str, Any], inherited: Mapping[str, str]) -> OauthLogin | None:
    early = options["bearer.auth.cache.expiry.buffer.seconds"]
    if source == "OAUTHBEARER":
        client, secret = (options[name] for name in _CLIENT)
        return OauthLogin(options[_ENDPOINT], client, secret, options["bearer.auth.scope"] or "", early)
    if source == "SASL_OAUTHBEARER_INHERIT":
        sasl = _login_module(options, inherited)
        endpoint = _inherited_endpoint(options[_TOKEN_URL], sasl, inherited)
        client, key, scope = (_first(sasl, name) for name in ("clientId", "clientSecret", "scope"))
        return OauthLogin(endpoint, client, Secret(key), scope, early)
    return None


def _inherited_endpoint(own: str | None, sasl: Mapping[str, str], inherited: Mapping[str, str]) -> str:
    return own or inherited.get(_TOKEN_URL, "").strip() or sasl.get("oauth.token.endpoint.uri", "").strip()


def _first(sasl: Mapping[str, str], name: str) -> str:
    """Kafka's own spelling of a login module's option, or Strimzi's."""
    strimzis = {"clientId": "oauth.client.id", "clientSecret": "oauth.client.secret", "scope": "oauth.scope"}
    return sasl.get(name) or sasl.get(strimzis[name], "")


def _login_module(options: Mapping[str, Any], inherited: Mapping[str, str]) -> dict[str, str]:
    own = options.get(_JAAS)
    text = own.reveal() if isinstance(own, Secret) else own
    return parse_jaas(text or inherited.get(_JAAS, ""))[1]


def objections(given: Mapping[str, str], inherited: Mapping[str, str]) -> Iterator[Objection]:
    """What is wrong with the options of a login together, as text; ``inherited`` are the worker's properties."""
    yield from _basic_objections(given, inherited)
    token = given.get("bearer.auth.token", "").strip()
    if any(not "!" <= character <= "~" for character in token):
        text = "Holds a line break, a blank or another character that no HTTP header can carry"
        yield Objection("bearer.auth.token", text, secret=True)
    source = given.get("bearer.auth.credentials.source", "").strip().upper()
    if source == "STATIC_TOKEN" and not token:
        yield Objection("bearer.auth.token", "Is needed by bearer.auth.credentials.source=STATIC_TOKEN")
    if source == "OAUTHBEARER":
        for name in (_ENDPOINT, *_CLIENT):
            if not given.get(name, "").strip():
                yield Objection(name, "Is needed by bearer.auth.credentials.source=OAUTHBEARER")
    if source == "SASL_OAUTHBEARER_INHERIT":
        yield from _inherited_objections(source, given, inherited, ("clientId", "clientSecret"))
    for name, other in (("proxy.host", "proxy.port"), ("proxy.port", "proxy.host")):
        if given.get(name, "").strip() and not given.get(other, "").strip():
            yield Objection(other, f"Is needed beside {name}")
    for name in ("bearer.auth.logical.cluster", "bearer.auth.identity.pool.id"):
        if any(not " " <= character <= "~" for character in given.get(name, "").strip()):
            yield Objection(name, "Holds a character that no HTTP header can carry")


def _basic_objections(given: Mapping[str, str], inherited: Mapping[str, str]) -> Iterator[Objection]:
    source = given.get("basic.auth.credentials.source", "").strip().upper()
    info = given.get("basic.auth.user.info", given.get("schema.registry.basic.auth.user.info"))
    if source == "USER_INFO" and not info:
        problem = "Is needed by basic.auth.credentials.source=USER_INFO"
        yield Objection("basic.auth.user.info", problem, "user:password")
    elif source == "SASL_INHERIT":
        yield from _inherited_objections(source, given, inherited, ("username", "password"))
    elif info and ":" not in info:
        yield Objection("basic.auth.user.info", "Must hold a colon", "user:password", secret=True)


def _inherited_objections(
    source: str, given: Mapping[str, str], inherited: Mapping[str, str], needed: tuple[str, str]
) -> Iterator[Objection]:
    if not given.get(_JAAS, inherited.get(_JAAS, "")).strip():
        yield Objection(_JAAS, f"Is needed by {source}, here or in the worker's file", secret=True)
        return
    try:
        sasl = _login_module(given, inherited)
    except JaasError as error:
        yield Objection(_JAAS, str(error), secret=True)
        return
    found = {name: _first(sasl, name) if name.startswith("client") else sasl.get(name) for name in needed}
    for name in needed:
        if not found[name]:
            yield Objection(_JAAS, f"Has no {name}, which {source} takes", secret=True)
    if source == "SASL_OAUTHBEARER_INHERIT":
        endpoint = _inherited_endpoint(given.get(_TOKEN_URL, "").strip(), sasl, inherited)
        try:
            _endpoint(endpoint)
        except Invalid as invalid:
            problem = f"{invalid.problem}, here or in the worker's file: it gives out the tokens"
            yield Objection(_TOKEN_URL, problem, invalid.suggestion)
