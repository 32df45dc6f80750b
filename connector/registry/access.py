"""How requests get to a Schema Registry: connections, through a proxy or not, and the login that each one carries.

In: a ``RegistryConfig``. Out: connections, what they ask for, and headers; tokens of OAuth are fetched when they are
needed, and replaced before their end.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from typing import Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

from connector.config import KeystoreError, OauthLogin, RegistryConfig, Secret, configured_context
from connector.errors import ConfigurationError, FatalDeliveryError, LoginRefused, Problem, RetriableDeliveryError
from connector.registry.timely_http import Answer, ask

_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
TIMEOUT_SECONDS: Final = 10.0
_MOST_BYTES: Final = 2**20
#: What those answer that may answer better later.
TRANSIENT: Final = frozenset((408, 425, 429, 500, 502, 503, 504))


class RegistryAccess:
    """Of one registry; used by one thread at a time."""

    def __init__(self, registry: RegistryConfig) -> None:
        self._registry = registry
        self._context: ssl.SSLContext | None = None
        self._token: Secret | None = registry.token if registry.oauth is None else None
        self._token_ends: float | None = None

    def connect(self, url: str) -> http.client.HTTPConnection:
        """A connection for requests to an address, which is opened with the first of them."""
        parts = urlsplit(url)
        proxy = self._registry.proxy
        if proxy is None:
            return self._connection(parts.scheme, parts.hostname or "", parts.port)
        # A proxy is spoken to without TLS, as Java does; what it passes on to an https address, it cannot read.
        connection = self._connection(parts.scheme, *proxy)
        if parts.scheme == "https":
            connection.set_tunnel(parts.hostname or "", parts.port or 443, self._proxy_headers())
        return connection

    def target(self, url: str, path: str) -> str:
        """What a request for a path of the registry asks for: a proxy is told the whole address."""
        parts = urlsplit(url)
        whole = f"{parts.scheme}://{parts.netloc}" if self._registry.proxy and parts.scheme == "http" else ""
        return f"{whole}{parts.path.rstrip('/')}{path}"

    def headers(self, url: str) -> dict[str, str]:
        """For the next request, with a token that is still good."""
        headers = {"Accept": _CONTENT_TYPE, "Content-Type": _CONTENT_TYPE, **self._registry.headers}
        if urlsplit(url).scheme == "http":
            # Those of a tunnel are the proxy's alone.
            headers |= self._proxy_headers()
        if self._registry.oauth is not None and not self._has_token():
            self._fetch_token(self._registry.oauth)
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.reveal()}"
        elif self._registry.user_info:
            headers["Authorization"] = _basic(self._registry.user_info.reveal())
        return headers

    def _proxy_headers(self) -> dict[str, str]:
        user = self._registry.proxy_user
        return {"Proxy-Authorization": _basic(user.reveal())} if user else {}

    def forget_token(self) -> bool:
        """Whether there was a token that another can take the place of: the registry refused it."""
        had = self._registry.oauth is not None and self._token is not None
        if had:
            self._token = None
        return had

    def _has_token(self) -> bool:
        return self._token is not None and (self._token_ends is None or time.monotonic() < self._token_ends)

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        if self._context is None:
            try:
                self._context = configured_context(self._registry.tls)
            except KeystoreError as error:
                raise ConfigurationError([Problem("schema.registry.ssl", str(error), None, error.remedy)]) from None
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=self._context)

    def _fetch_token(self, login: OauthLogin) -> None:
        given = self._ask_for_token(login)
        status = given.status
        if status in TRANSIENT:
            raise RetriableDeliveryError(f"{_about(login)}: HTTP {status}")
        if given.elsewhere is not None:
            raise FatalDeliveryError(
                f"{_about(login)}: sends us on to {given.elsewhere}: if tokens are there, write that address in "
                f"bearer.auth.issuer.endpoint.url (HTTP {status})"
            )
        answer = _parsed(given.content)
        if status >= 300:
            said = ": ".join(str(answer[name])[:200] for name in ("error", "error_description") if name in answer)
            raise LoginRefused(
                f"{_about(login)}: the login was refused: check bearer.auth.client.id, bearer.auth.client.secret and "
                f"bearer.auth.scope ({said or f'HTTP {status}'})"
            )
        token, lives = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(token, str) or not token or any(not "!" <= character <= "~" for character in token):
            raise FatalDeliveryError(f"{_about(login)}: its answer has no access_token")
        self._token = Secret(token)
        lives = float(lives) if isinstance(lives, int | float | str) and _is_number(lives) else None
        # Half of a life that is shorter than what is to be left of it.
        self._token_ends = None if lives is None else time.monotonic() + max(lives - login.early_seconds, lives / 2)

    def _ask_for_token(self, login: OauthLogin) -> Answer:
        parts = urlsplit(login.endpoint)
        form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
        pair = f"{quote_plus(login.client_id)}:{quote_plus(login.client_secret.reveal())}"
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
            "Authorization": _basic(pair),
        }
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            return ask(connection, "POST", path, urlencode(form), headers, _MOST_BYTES, TIMEOUT_SECONDS)
        except ssl.SSLCertVerificationError as error:
            text = f"{_about(login)}: its certificate is not trusted: {error.verify_message}"
            raise LoginRefused(text) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise RetriableDeliveryError(f"{_about(login)} cannot be reached: {reason}") from None
        finally:
            connection.close()


def _basic(login: str) -> str:
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def _about(login: OauthLogin) -> str:
    return f"tokens of {login.endpoint}"


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except (RecursionError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _is_number(given: object) -> bool:
    try:
        return 0 < float(str(given)) < 2**31
    except ValueError:
        return False
