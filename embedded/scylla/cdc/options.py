"""The `cdc = {…}` option of a table: parsing, ScyllaDB's errors, the serialised forms.

Comes in: the option map as CQL gives it (text to text). Goes out: `CdcOptions`, the map for DESCRIBE and the
blob of `system_schema.tables.extensions['cdc']`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from embedded.scylla.errors import ConfigurationException, InvalidRequest

DEFAULT_TTL = 86_400
_MAX_TTL = (1 << 31) - 1
_TRUE, _FALSE = ("true", "1"), ("false", "0")
# ScyllaDB reads the number with a prefix parser: '10abc' is 10.
_NUMBER = re.compile(r"\s*([+-]?\d+)")

PreImage = Literal["false", "true", "full"]


@dataclass(frozen=True, slots=True)
class CdcOptions:
    """`enabled` is None when the option map does not say: legal, and off."""

    enabled: bool | None = None
    preimage: PreImage = "false"
    postimage: bool = False
    delta: Literal["full", "keys"] = "full"
    ttl: int = DEFAULT_TTL

    @property
    def on(self) -> bool:
        return self.enabled is True

    @property
    def images(self) -> bool:
        """Whether writes must read the rows they change."""
        return self.preimage != "false" or self.postimage

    def as_map(self) -> dict[str, str]:
        """As the schema tables and DESCRIBE spell it; empty when `enabled` was never given."""
        if self.enabled is None:
            return {}
        return {
            "enabled": _boolean_text(self.enabled),
            "preimage": self.preimage,
            "postimage": _boolean_text(self.postimage),
            "delta": self.delta,
            "ttl": str(self.ttl),
        }

    def as_extension(self) -> bytes:
        """The value of `extensions['cdc']`: count, then length-prefixed keys and values, little-endian."""
        entries = sorted(self.as_map().items())
        parts = [struct.pack("<I", len(entries))]
        for text in (text for entry in entries for text in entry):
            raw = text.encode()
            parts += [struct.pack("<I", len(raw)), raw]
        return b"".join(parts)


OFF = CdcOptions()


def parse_options(given: Mapping[str, str] | None) -> CdcOptions:
    """The options of a table; None and maps without `enabled` are off. Raises ConfigurationException."""
    if not given:
        return OFF
    enabled: bool | None = None
    preimage: PreImage = "false"
    postimage = False
    delta: Literal["full", "keys"] = "full"
    ttl = DEFAULT_TTL
    for raw_key, raw_value in given.items():
        key, value = raw_key.lower(), raw_value.lower()
        if key == "enabled":
            enabled = _boolean(key, raw_value)
        elif key == "preimage":
            preimage = "full" if value == "full" else "true" if _boolean(key, raw_value) else "false"
        elif key == "postimage":
            postimage = _boolean(key, raw_value)
        elif key == "delta":
            if value not in ("full", "keys"):
                raise _invalid(key, raw_value)
            delta = "keys" if value == "keys" else "full"
        elif key == "ttl":
            ttl = _ttl(value)
        elif key in ("enable_requested", "tablet_merge_blocked"):
            _boolean(key, raw_value)
        else:
            raise ConfigurationException(f"Invalid CDC option: {raw_key}")
    return CdcOptions(enabled, preimage, postimage, delta, ttl)


def require_enabled_flag(given: Mapping[str, str] | None) -> None:
    """ALTER TABLE … WITH cdc replaces the whole set and must say `enabled`."""
    if given is not None and not any(key.lower() == "enabled" for key in given):
        raise InvalidRequest('Altering CDC options requires specifying "enabled" flag')


def _boolean(key: str, value: str) -> bool:
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise _invalid(key, value)


def _ttl(value: str) -> int:
    number = _NUMBER.match(value)
    if number is None:
        raise _invalid("ttl", value)
    ttl = int(number.group(1))
    if ttl > _MAX_TTL or ttl < -_MAX_TTL - 1:
        raise ConfigurationException("Invalid CDC option: ttl too large")
    if ttl < 0:
        raise ConfigurationException("Invalid CDC option: ttl must be >= 0")
    return ttl


def _invalid(key: str, value: str) -> ConfigurationException:
    return ConfigurationException(f'Invalid value for CDC option "{key}": {value}')


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"
