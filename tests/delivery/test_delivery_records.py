"""Records of the offsets topic: whatever stands there is an entry, somebody else's, or named by its place."""

from __future__ import annotations

import json
import random

import pytest

from connector.delivery.records import compact_json, decode_offsets_entry, encode_offsets_key
from connector.offsets_entry import OffsetsEntry

KEY = {"keyspace_name": "ks", "table_name": "t", "slot": 1, "slots": 2}
DEEP = b"[" * 100_000


def decoded(key: bytes | None, value: bytes | None, offset: int) -> OffsetsEntry | None:
    return decode_offsets_entry("mine", 3, key, value, "positions", offset)


def test_entries_are_read_back_with_their_place() -> None:
    entry = decoded(encode_offsets_key("mine", KEY), compact_json({"owner": "w-1"}), 17)
    assert entry == OffsetsEntry(3, KEY, {"owner": "w-1"}) and entry.owner == "w-1"
    assert entry.place == "topic positions, partition 3, offset 17"
    assert decoded(encode_offsets_key("mine", KEY), None, 17) == OffsetsEntry(3, KEY, None)


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"1",
        b"\xff\xfe",
        b"[" * 100_000,
        b'["mine"]',
        b'["mine", 1]',
        b'["mine", {"slots": [1]}]',
        b'["mine", {"keyspace_name": "\\ud800"}]',
        b'["\\ud800", {}]',
        b'[["mine"], {}]',
        b'{"mine": {}}',
    ],
)
def test_foreign_records_are_named_once_and_passed_over(
    key: bytes | None, caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    offset = random.Random(request.node.name).randrange(2**60)
    for _ in range(2):
        assert decoded(key, DEEP, offset) is None
    assert len(caplog.records) == 1
    assert f"topic positions, partition 3, offset {offset}: a foreign record is passed over" in caplog.text


def test_another_connectors_records_are_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    for value in (None, b"x", DEEP, b'{"owner": "\\ud800"}'):
        assert decoded(encode_offsets_key("other", KEY), value, 1) is None
    assert not caplog.records


@pytest.mark.parametrize("value", [b"", b"x", b"1", b"null", b"\xff", DEEP, b'{"owner": "\\ud800"}'])
def test_a_damaged_value_of_our_own_is_kept_for_whoever_needs_it(value: bytes) -> None:
    assert decoded(encode_offsets_key("mine", KEY), value, 1) == OffsetsEntry(3, KEY, {})


@pytest.mark.parametrize("owner", [1, "", "x\0", "x" * 5000, None])
def test_what_can_be_no_process_is_no_owner(owner: object) -> None:
    entry = decoded(encode_offsets_key("mine", KEY), json.dumps({"owner": owner}).encode(), 1)
    assert entry is not None and entry.owner is None
