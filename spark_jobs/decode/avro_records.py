"""Avro records as the JSON text that the decoder reads.

In: a batch of Confluent-framed Avro values and a Schema Registry. Out: the batch with a ``text`` column. Writer schemas
are asked for on the driver, once each; their logical types are taken off: a landed value is what the record holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


class Registry:
    """Reads writer schemas by id; asks each server in turn."""

    def __init__(self, urls: Sequence[str], options: Mapping[str, str]) -> None:
        bare, login = without_logins(tuple(url.rstrip("/") for url in urls))
        given = options.get("schema.registry.basic.auth.user.info", "").strip()
        user = Secret(given) if given else login
        # One for each, since what one of them refuses another may know.
        self._servers = [SchemaRegistry(_reached(url, user)) for url in bare]
        self._known: dict[int, str | None] = {}

    def schema(self, number: int) -> str | None:
        """The schema as Spark takes it, or None if the registry has no such schema."""
        if number not in self._known:
            self._known[number] = self._fetch(number)
        return self._known[number]

    def _fetch(self, number: int) -> str | None:
        failures: list[str] = []
        for server in self._servers:
            try:
                # Nothing is asked of it again for a long time.
                with server:
                    text = server.find_schema(number)
                return None if text is None else json.dumps(_plain(json.loads(text)))
            except CdcError as error:
                failures.append(str(error))
            except (RecursionError, ValueError, KeyError, TypeError) as error:
                failures.append(f"{server.address}: schema {number} cannot be read: {error}")
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


def with_avro_text(batch: DataFrame, registry: Registry, column: str = "value") -> DataFrame:
    """Adds ``text``, for a key ``key_text``; null where the bytes are not a record of a known schema."""
    framed, number = _FRAMED.format(column), _ID.format(column)
    found = batch.where(f"{column} IS NOT NULL AND {framed}").selectExpr(f"{number} AS id").distinct().collect()
    cases: list[str] = []
    for row in found:
        schema = registry.schema(row["id"])
        if schema is not None:
            record = f"from_avro(substring({column}, 6), {literal(schema)}, map('mode', 'PERMISSIVE'))"
            cases.append(f"WHEN {number} = {row['id']} THEN to_json({record}, map('ignoreNullFields', 'false'))")
    # A converter of keys may be another one.
    other = "NULL" if column == "value" else f"CAST({column} AS string)"
    text = f"CASE WHEN NOT {framed} THEN {other} {' '.join(cases)} END"
    name = "text" if column == "value" else f"{column}_text"
    # The generator keeps Spark from decoding the record once for each use of its text.
    return batch.selectExpr("*", f"inline_outer(array({struct_of([(name, text)])}))")
