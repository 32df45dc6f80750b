"""The Schema Registry: ids of schemas, and schemas of ids, over its HTTP interface.

In: a ``RegistryConfig``. Out: numbers and schema texts, each asked for once and then remembered. What
registry or network refuses becomes an error of ``connector.errors`` that says in plain words what to do.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from connector.config import ConverterConfig, RegistryConfig
from connector.errors import ConfigurationError, FatalDeliveryError, LoginRefused, Problem, RetriableDeliveryError
from connector.registry.access import TIMEOUT_SECONDS, TRANSIENT, RegistryAccess
from connector.registry.same_bytes import difference
from connector.registry.timely_http import Answer, ask

_MOST_BYTES = 16 * 2**20


class _NotThere(FatalDeliveryError):
    """What was asked for."""


_KINDS = {401: LoginRefused, 404: _NotThere}


class SchemaRegistry:
    """One registry, as one converter is configured to use it. Safe to call from several threads."""

    def __init__(
        self,
        registry: RegistryConfig,
        *,
        auto_register: bool = True,
        use_latest_version: bool = False,
        normalize: bool = False,
    ) -> None:
        self._registry = registry
        self._auto_register = auto_register
        self._use_latest_version = use_latest_version
        self._query = "?normalize=true" if normalize else ""
        self._ids: dict[tuple[str, str], int] = {}
        self._schemas: dict[int, str] = {}
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None
        self._turn = 0
        self._access = RegistryAccess(registry)

    @classmethod
    def of(cls, converter: ConverterConfig) -> SchemaRegistry:
        """The registry that an Avro converter is configured with."""
        if converter.registry is None:
            raise ConfigurationError([Problem("schema.registry.url", "Is needed by the AvroConverter")])
        return cls(
            converter.registry,
            auto_register=converter.auto_register,
            use_latest_version=converter.use_latest_version,
            normalize=converter.normalize,
        )

    def id_for(self, subject: str, schema_json: str) -> int:
        """The id of a schema under a subject: registered if need be and allowed, else looked up."""
        with self._lock:
            known = self._ids.get((subject, schema_json))
            if known is None:
                known = self._ask_id(subject, schema_json)
                self._ids[(subject, schema_json)] = known
                self._schemas.setdefault(known, schema_json)
            return known

    def schema_of(self, schema_id: int) -> str:
        """The schema that a record's id names."""
        with self._lock:
            if schema_id not in self._schemas:
                answer = self._call("GET", f"/schemas/ids/{schema_id}", None, f"schema {schema_id}")
                self._schemas[schema_id] = self._member(answer, "schema", str)
            return self._schemas[schema_id]

    def find_schema(self, schema_id: int) -> str | None:
        """The same, or None where the registry says that it has no such schema."""
        try:
            return self.schema_of(schema_id)
        except _NotThere:
            return None

    def subjects(self) -> list[str]:
        """All subjects: the cheapest question that shows whether address and login are right."""
        with self._lock:
            answer = self._call("GET", "/subjects", None, "subjects")
        return [str(subject) for subject in answer] if isinstance(answer, list) else []

    @property
    def address(self) -> str:
        """For messages."""
        return self._address()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def __enter__(self) -> SchemaRegistry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask_id(self, subject: str, schema_json: str) -> int:
        path = f"/subjects/{quote(subject, safe='')}"
        about = f"subject {subject}"
        body = json.dumps({"schema": schema_json})
        if self._auto_register:
            answer = self._call("POST", f"{path}/versions{self._query}", body, about)
        elif self._use_latest_version:
            answer = self._call("GET", f"{path}/versions/latest", None, about)
            self._check_latest(answer, schema_json, about)
        else:
            answer = self._call("POST", f"{path}{self._query}", body, about)
        found: int = self._member(answer, "id", int)
        if isinstance(found, bool) or not 0 <= found < 2**31:
            # A record has four bytes for it.
            raise FatalDeliveryError(f"{self._address()} is not a Schema Registry: the id of {about} is {found}")
        return found

    def _check_latest(self, answer: Any, schema_json: str, about: str) -> None:
        """Its id says to readers what bytes are, which are written by the schema of the records."""
        differs = difference(schema_json, self._member(answer, "schema", str), list(self._referred(answer)))
        if differs is not None:
            raise FatalDeliveryError(
                f"{self._address()}: {about}: its latest schema is another one than that of the records: {differs}; "
                "register that of the records (auto.register.schemas=true does it by itself), or do without "
                "use.latest.version"
            )

    def _referred(self, answer: dict[str, Any]) -> Iterator[str]:
        """The schemas that one refers to, each behind those that itself refers to."""
        for reference in answer.get("references") or ():
            subject, version = self._member(reference, "subject", str), self._member(reference, "version", int)
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            found = self._call("GET", path, None, f"subject {subject}")
            yield from self._referred(found)
            yield self._member(found, "schema", str)

    def _member(self, answer: Any, name: str, kind: type[Any]) -> Any:
        found = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(found, kind):
            raise FatalDeliveryError(f"{self._address()} is not a Schema Registry: its answer has no {name}")
        return found

    def _call(self, method: str, path: str, body: str | None, about: str) -> Any:
        """One request; every address gets its turn, and a connection that was closed meanwhile a second try."""
        failure: RetriableDeliveryError | None = None
        renewed, silent = False, 0
        for _ in range(len(self._registry.urls) + 1):
            reused = self._connection is not None
            try:
                answer = self._exchange(method, path, body)
            except ssl.SSLCertVerificationError as error:
                self._drop()
                raise LoginRefused(
                    f"{self._address()}: its certificate is not trusted: {error.verify_message}"
                ) from None
            except ValueError as error:
                # An address or a login that no request can be made of.
                self._drop()
                raise FatalDeliveryError(f"{self._address()} cannot be asked: {error}") from None
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
                failure = RetriableDeliveryError(f"{self._address()} cannot be reached: {reason}")
                if not reused:
                    self._turn += 1
                if isinstance(error, TimeoutError):
                    # Each has its time once: another attempt is the caller's.
                    silent += 1
                    if silent == len(self._registry.urls):
                        break
                continue
            if answer.status in TRANSIENT:
                failure = RetriableDeliveryError(f"{self._address()}: {about}: {_reason(answer)}")
                self._drop()
                self._turn += 1
                continue
            if answer.status == 401 and not renewed and self._access.forget_token():
                renewed = True
                failure = RetriableDeliveryError(f"{self._address()}: {about}: the token was refused")
                continue
            if answer.status >= 300:
                raise self._refusal(answer, about)
            try:
                return json.loads(answer.content)
            except (RecursionError, ValueError):
                raise FatalDeliveryError(
                    f"{self._address()} is not a Schema Registry: its answer is not JSON"
                ) from None
        assert failure is not None
        raise failure

    def _exchange(self, method: str, path: str, body: str | None) -> Answer:
        headers = self._access.headers(self._url())
        if self._connection is None:
            self._connection = self._access.connect(self._url())
        target = self._access.target(self._url(), path)
        answer = ask(self._connection, method, target, body, headers, _MOST_BYTES, TIMEOUT_SECONDS)
        if len(answer.content) > _MOST_BYTES:
            raise http.client.HTTPException(f"its answer has more than {_MOST_BYTES // 2**20} MiB")
        return answer

    def _url(self) -> str:
        return self._registry.urls[self._turn % len(self._registry.urls)]

    def _address(self) -> str:
        proxy = self._registry.proxy
        way = f" through the proxy {proxy[0]}:{proxy[1]}" if proxy else ""
        return f"Schema Registry {self._url()}{way}"

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _refusal(self, answer: Answer, about: str) -> FatalDeliveryError:
        reason = _reason(answer)
        if answer.elsewhere is not None:
            return FatalDeliveryError(
                f"{self._address()}: {about}: sends us on to {answer.elsewhere}: if the registry is there, write its "
                f"address in schema.registry.url ({reason})"
            )
        if answer.status == 404 and not _is_a_registrys(answer):
            return FatalDeliveryError(
                f"{self._address()}: {about}: no Schema Registry answers there, but something that has no such path: "
                f"write its address in schema.registry.url, with the path that it may have ({reason})"
            )
        remedies = {
            401: "the login was refused: check basic.auth.user.info or bearer.auth.*",
            403: "the user may not do this: grant read and write on the subject",
            409: "the schema is incompatible with the one registered before; change the subject's compatibility, "
            "or write to another topic",
            404: "not found; with auto.register.schemas=false the schema must be registered beforehand",
            422: "the registry takes the schema for invalid",
        }
        kind = _KINDS.get(answer.status, FatalDeliveryError)
        return kind(f"{self._address()}: {about}: {remedies.get(answer.status, 'refused')} ({reason})")


def _is_a_registrys(given: Answer) -> bool:
    """Of a 404: whether a registry says that it does not have what was asked for. Confluent's, Karapace and Apicurio
    have numbers from 40401 on, which of them for what is not the same everywhere; 404 is what any server says that has
    no such path, a registry's own among them."""
    try:
        code = json.loads(given.content)["error_code"]
    except (KeyError, RecursionError, TypeError, ValueError):
        return False
    return isinstance(code, int) and 40400 < code < 40500


def _reason(given: Answer) -> str:
    """What the registry itself says, cut to a length that fits a log line."""
    try:
        answer = json.loads(given.content)
        text = f"{answer['error_code']}: {answer['message']}"
    except (KeyError, RecursionError, TypeError, ValueError):
        text = f"HTTP {given.status}"
    return text if len(text) <= 500 else text[:500] + "…"
