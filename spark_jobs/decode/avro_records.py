"""Avro records as the JSON text that the decoder reads.

In: a batch of Confluent-framed Avro values and a Schema Registry. Out: the batch with a ``text`` column. Writer schemas
are asked for on the driver, once each; their logical types are taken off: a landed value is what the record holds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from pyspark.sql import DataFrame

from connector.config import RegistryConfig, Secret, without_logins
from connector.errors import CdcError, LandingError
from connector.registry import SchemaRegistry
from spark_jobs.model import literal, struct_of

_ID = "CAST(conv(hex(substring({0}, 2, 4)), 16, 10) AS bigint)"
_FRAMED = "(length({0}) > 5 AND substring({0}, 1, 1) = X'00')"


PATIENCE_S = 30.0
"""For so long a schema that nobody has is waited for: a registry may be behind the one that has given it its number."""
_ASKED = 2


@dataclass
class _Missed:
    """When an id was asked for and not known first, and how often since."""

    since: float
    times: int = 0


class Registry:
    """Reads writer schemas by id; asks each server in turn."""

    def __init__(self, urls: Sequence[str], options: Mapping[str, str]) -> None:
        bare, login = without_logins(tuple(url.rstrip("/") for url in urls))
        given = options.get("schema.registry.basic.auth.user.info", "").strip()
        user = Secret(given) if given else login
        # One for each, since what one of them refuses another may know.
        self._servers = [SchemaRegistry(_reached(url, user)) for url in bare]
        self._known: dict[int, str] = {}
        self._missed: dict[int, _Missed] = {}
        self.patience_s = PATIENCE_S

    def schema(self, number: int) -> str | None:
        """The schema as Spark takes it, or None if no registry has such a schema now: one that lags behind another has
        it later."""
        if number not in self._known and (found := self._fetch(number)) is not None:
            self._known[number] = found
        return self._known.get(number)

    def schemas(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Those of a batch, all of them asked for; ``LandingError`` while one that nobody has may still come."""
        found = {number: self.schema(number) for number in numbers}
        now, waits = time.monotonic(), list[int]()
        for number in sorted(number for number, text in found.items() if text is None):
            missed = self._missed.setdefault(number, _Missed(now))
            missed.times += 1
            if missed.times < _ASKED or now < missed.since + self.patience_s:
                waits.append(number)
        if waits:
            asked = ", ".join(server.address for server in self._servers)
            raise LandingError(f"no Schema Registry has schema {', '.join(map(str, waits))} yet (asked: {asked})")
        return found

    def give_up(self, numbers: Iterable[int]) -> None:
        """Of these was waited for long enough: what names them is a dead letter already."""
        for number in numbers:
            self._missed[number] = _Missed(time.monotonic() - self.patience_s, _ASKED)

    def _fetch(self, number: int) -> str | None:
        failures: list[str] = []
        for server in self._servers:
            try:
                # Nothing is asked of it again for a long time.
                with server:
                    text = server.find_schema(number)
                if text is not None:
                    return json.dumps(_plain(json.loads(text)))
            except CdcError as error:
                failures.append(str(error))
            except (RecursionError, ValueError, KeyError, TypeError) as error:
                failures.append(f"{server.address}: schema {number} cannot be read: {error}")
        if not failures:
            return None
        raise LandingError(f"no Schema Registry answers for schema {number}: {'; '.join(failures)}")


def _reached(url: str, user: Secret | None) -> RegistryConfig:
    """With the proxy that the environment names for it (``https_proxy``, ``no_proxy``)."""
    parts = urlsplit(url)
    given = getproxies().get(parts.scheme, "")
    if not given or proxy_bypass(parts.netloc):
        return RegistryConfig((url,), user)
    try:
        proxy = urlsplit(given if "//" in given else f"//{given}")
        place = (proxy.hostname or "", proxy.port or 80)
    except ValueError:
        raise LandingError(f"what the environment says in {parts.scheme}_proxy is no address") from None
    login = unquote(proxy.netloc.rpartition("@")[0])
    return RegistryConfig((url,), user, proxy=place, proxy_user=Secret(login) if login else None)


def _plain(schema: Any) -> Any:
    """The schema without logical types and Connect's annotations, which Spark would turn into other types."""
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType" and not name.startswith("connect.")}
    for name in ("type", "items", "values"):
        if name in kept:
            kept[name] = _plain(kept[name])
    if "fields" in kept:
        kept["fields"] = [{**field, "type": _plain(field["type"])} for field in kept["fields"]]
    return kept


def with_avro_text(batch: DataFrame, registry: Registry, column: str = "value") -> tuple[DataFrame, str | None]:
    """Adds ``text``, for a key ``key_text``; null where the bytes are not a record of a known schema. Also SQL that
    finds records whose schema nobody has, by ``raw_value``; None if there are none."""
    framed, number = _FRAMED.format(column), _ID.format(column)
    cases: list[str] = []
    unknown: list[str] = []
    for id_, schema in registry.schemas(_numbers(batch, column)).items():
        if schema is None:
            unknown.append(str(id_))
            continue
        record = f"from_avro(substring({column}, 6), {literal(schema)}, map('mode', 'PERMISSIVE'))"
        cases.append(f"WHEN {number} = {id_} THEN to_json({record}, map('ignoreNullFields', 'false'))")
    # A converter of keys may be another one.
    other = "NULL" if column == "value" else f"CAST({column} AS string)"
    text = f"CASE WHEN NOT {framed} THEN {other} {' '.join(cases)} END"
    name = "text" if column == "value" else f"{column}_text"
    raw = f"raw_{column}"
    missing = f"{_FRAMED.format(raw)} AND {_ID.format(raw)} IN ({', '.join(unknown)})" if unknown else None
    # The generator keeps Spark from decoding the record once for each use of its text.
    return batch.selectExpr("*", f"inline_outer(array({struct_of([(name, text)])}))"), missing


def knows_any(letters: DataFrame, registry: Registry) -> bool:
    """Whether a registry has by now one of the schemas that these records name. The others are not waited for again."""
    numbers = _numbers(letters, "value")
    registry.give_up(numbers)
    try:
        return any(registry.schemas(numbers).values())
    except LandingError:
        # None answers, and what is new may need none.
        return False


def _numbers(batch: DataFrame, column: str) -> list[int]:
    """The schemas that a batch's records name."""
    framed = batch.where(f"{column} IS NOT NULL AND {_FRAMED.format(column)}")
    return [row["id"] for row in framed.selectExpr(f"{_ID.format(column)} AS id").distinct().collect()]
