"""The `cdc = {…}` option: what is accepted, what is refused with which words, the serialised forms."""

from __future__ import annotations

import struct

import pytest

from embedded.scylla.cdc.options import CdcOptions, parse_options, require_enabled_flag
from embedded.scylla.errors import ConfigurationException, InvalidRequest


def test_the_defaults() -> None:
    assert parse_options({"enabled": "true"}) == CdcOptions(True, "false", False, "full", 86400)
    assert parse_options(None) == parse_options({}) == CdcOptions()
    assert not parse_options({"preimage": "true"}).on


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"ENABLED": "TRUE"}, CdcOptions(True)),
        ({"enabled": "1", "preimage": "1", "postimage": "1"}, CdcOptions(True, "true", True)),
        ({"enabled": "0"}, CdcOptions(False)),
        ({"enabled": "true", "preimage": "FULL"}, CdcOptions(True, "full")),
        ({"enabled": "true", "delta": "Keys", "ttl": "0"}, CdcOptions(True, delta="keys", ttl=0)),
        ({"enabled": "true", "ttl": "10abc"}, CdcOptions(True, ttl=10)),
    ],
)
def test_spellings(given: dict[str, str], expected: CdcOptions) -> None:
    assert parse_options(given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"enabled": "Yes"}, 'Invalid value for CDC option "enabled": Yes'),
        ({"enabled": "true", "preimage": "keys"}, 'Invalid value for CDC option "preimage": keys'),
        ({"enabled": "true", "postimage": "full"}, 'Invalid value for CDC option "postimage": full'),
        ({"enabled": "true", "delta": "off"}, 'Invalid value for CDC option "delta": off'),
        ({"enabled": "true", "ttl": "soon"}, 'Invalid value for CDC option "ttl": soon'),
        ({"enabled": "true", "ttl": "99999999999"}, "Invalid CDC option: ttl too large"),
        ({"enabled": "true", "ttl": "-1"}, "Invalid CDC option: ttl must be >= 0"),
        ({"enabled": "true", "retention": "1"}, "Invalid CDC option: retention"),
    ],
)
def test_refusals(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationException) as error:
        parse_options(given)
    assert str(error.value) == words


def test_alter_must_say_enabled() -> None:
    require_enabled_flag({"Enabled": "false"})
    with pytest.raises(InvalidRequest, match='Altering CDC options requires specifying "enabled" flag'):
        require_enabled_flag({"ttl": "5"})


def test_the_map_form() -> None:
    assert parse_options({"enabled": "true", "preimage": "full", "ttl": "5"}).as_map() == {
        "enabled": "true",
        "preimage": "full",
        "postimage": "false",
        "delta": "full",
        "ttl": "5",
    }
    assert parse_options({"ttl": "5"}).as_map() == {}


def test_the_extension_is_read_back_as_readers_do() -> None:
    raw = parse_options({"enabled": "true", "ttl": "300"}).as_extension()
    (count,) = struct.unpack_from("<I", raw)
    texts, at = [], 4
    for _ in range(2 * count):
        (length,) = struct.unpack_from("<I", raw, at)
        texts.append(raw[at + 4 : at + 4 + length].decode())
        at += 4 + length

    assert at == len(raw)
    assert dict(zip(texts[::2], texts[1::2])) == parse_options({"enabled": "true", "ttl": "300"}).as_map()
