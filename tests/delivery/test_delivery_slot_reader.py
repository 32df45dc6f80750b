"""Of each key of ours the newest record counts, however many there are and whoever else writes into the topic."""

from __future__ import annotations

import json
import random

import pytest
from confluent_kafka import KafkaError, Message

from connector.delivery.committed_words import Words, _SlotWords
from connector.delivery.records import COMMIT_HEADER, compact_json, encode_offsets_key, name_of_commit
from connector.delivery.slot_reader import Patience, SlotRecords
from connector.delivery.slots_reader import runs

ODD_NAMES = ["c", "cc", 'c"', "c\\", "ç", "c,{", "[", " c ", "c\u2028"]


def message(offset: int, key: bytes | None, value: bytes | None = b"{}", partition: int = 0) -> Message:
    return Message(topic="positions", partition=partition, offset=offset, key=key, value=value)


def end(offset: int, partition: int = 0) -> Message:
    return Message(topic="positions", partition=partition, offset=offset, error=KafkaError(KafkaError._PARTITION_EOF))


def read(records: SlotRecords, *messages: Message) -> list[Message]:
    return list(records.take(list(messages)))


def test_of_each_key_the_newest_is_kept_and_none_behind_a_tombstone() -> None:
    slot = SlotRecords("c", 0)
    one, two = (encode_offsets_key("c", {"slot": number, "slots": 2}) for number in (0, 1))
    assert not read(slot, message(3, one, b'{"read_to":1}'), message(4, two), message(5, one, b'{"read_to":2}'))
    read(slot, message(7, two, b"damaged"), message(8, one, None), message(9, one, b'{"read_to":3}'))
    found = slot.restored()
    assert [(entry.key["slot"], entry.value, entry.offset) for entry in found.entries] == [
        (1, {}, 7),
        (0, {"read_to": 3}, 9),
    ]
    assert found.end == 10
    read(slot, message(11, one), message(12, one, None))
    assert slot.restored().entries == []


def test_a_key_counts_however_it_is_spelled() -> None:
    slot = SlotRecords("ç", 0)
    usual = encode_offsets_key("ç", {"table_name": "t x"})
    odd = [json.dumps(["ç", {"table_name": "t x"}]).encode(), b'[ "\xc3\xa7",{"table_name":"t x"} ]']
    read(slot, message(1, usual, b'{"n":1}'), message(2, odd[0], b'{"n":2}'))
    assert [entry.value for entry in slot.restored().entries] == [{"n": 2}]
    read(slot, message(3, usual))
    read(slot, message(4, odd[1], None))
    assert slot.restored().entries == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_only_a_connectors_own_keys_are_its(name: str, caplog: pytest.LogCaptureFixture) -> None:
    slot = SlotRecords(name, 0)
    keys = [encode_offsets_key(other, {"x": number}) for number in (1, 2) for other in ODD_NAMES]
    read(slot, *(message(at, key) for at, key in enumerate(keys)))
    assert [entry.key for entry in slot.restored().entries] == [{"x": 1}, {"x": 2}]
    assert not caplog.records, "other connectors are nothing to speak of"


def test_foreign_records_are_named_and_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    slot = SlotRecords("c", 0)
    own = encode_offsets_key("c", {"x": 1})
    place = random.Random(7).randrange(2**50)
    keys = [None, b"", b"\xff", b'["c"]', b'["c",1]', b'["c",{"x":[1]}]', b"[" * 9_999]
    read(slot, message(place, own), *(message(place + 1 + at, key) for at, key in enumerate(keys)))
    assert [entry.key for entry in slot.restored().entries] == [{"x": 1}]
    for at in range(len(keys)):
        assert caplog.text.count(f"positions, partition 0, offset {place + 1 + at}: a foreign record") == 1


def test_ends_and_errors_among_the_records_are_handed_back() -> None:
    slot = SlotRecords("c", 0)
    events = read(slot, message(1, encode_offsets_key("c", {"x": 1})), end(2), message(3, None), end(4))
    assert [event.offset() for event in events] == [2, 4]
    assert slot.end == 4 and len(slot.restored().entries) == 1
    assert [event.offset() for event in read(slot, end(9))] == [9]


def test_the_owners_of_all_records_are_known_and_of_the_newest() -> None:
    slot = SlotRecords("c", 0, owners=True)
    key, other = encode_offsets_key("c", {"x": 1}), encode_offsets_key("other", {"x": 1})
    names = ["w-1", 'w"2', "w\\3", "ẅ-4", "w-5"]
    values = [compact_json({"read_to": 1, "owner": name}) for name in names]
    values += [b'{"owner" : "w-6"}', b'{"owner": 7}', b'{"owner":"w-8"', b'{"x": "\\"owner\\":\\"w-9\\""}']
    read(slot, message(1, other, b'{"owner":"a"}'), *(message(2 + at, key, value) for at, value in enumerate(values)))
    assert slot.owners == {*names, "w-6"}
    read(slot, message(20, key, values[1]))
    assert slot.newest_owners() == {'w"2'}


def test_what_owners_have_said_is_told_by_every_record_of_theirs() -> None:
    words = Words()
    slot = _SlotWords("c", 0, words)
    mark, position, foreign = (encode_offsets_key(name, {"x": at}) for at, name in enumerate(("c", "c", "other")))

    def said(offset: int, key: bytes, value: bytes | None, time_ms: int, name: str = "", stamped: int = 1) -> Message:
        headers = [(COMMIT_HEADER, name.encode())] if name else []
        return Message("positions", 0, offset, key, value, headers, None, (stamped, time_ms))

    first, second = name_of_commit("w-1", 100), name_of_commit("w-2", 200)
    run = [
        said(0, position, b"{}", 90),  # nobody's
        said(1, mark, b'{"owner":"w-1"}', 140),
        said(2, position, b'{"read_to":1}', 150, first),
        said(3, mark, b'{"owner":"w-1"}', 145, first),
        said(4, foreign, b'{"owner":"w-3"}', 900, name_of_commit("w-3", 1)),
        said(5, mark, b'{"owner":"w-2"}', 210, second),
        said(6, position, None, 205),
        end(8),
    ]
    assert [event.offset() for event in slot.take(run)] == [8]
    assert words.newest == {"w-1": 150, "w-2": 210} and words.commits == {first, second}
    assert words.committed_at("w-1", 148) and words.committed_at("w-1", 100) and not words.committed_at("w-1", 151)
    list(slot.take([said(9, mark, b'{"owner":"w-1"}', 5, name_of_commit("w-1", 300), stamped=2)]))
    assert words.newest["w-1"] > 2**60 and not words.committed_at("w-1", 301)


def test_what_others_write_into_a_slot_is_no_word_of_its_last_owner() -> None:
    """Or what he left open before it would count as something that he may have committed, for ever."""
    words = Words()
    slot = _SlotWords("c", 0, words)
    of_table = {"keyspace_name": "ks", "table_name": "t"}
    keys = [{**of_table, "slots": 1}, {**of_table, "stream_id": "00"}, {"group": "g", "term": 2, "id": "x"}]
    mark, position, group = (encode_offsets_key("c", key) for key in keys)

    def said(offset: int, key: bytes, value: bytes | None, time_ms: int, owner: str = "") -> Message:
        headers = [(COMMIT_HEADER, name_of_commit(owner, 100).encode())] if owner else []
        return Message("positions", 0, offset, key, value, headers, None, (1, time_ms))

    said_by_one = [said(1, mark, b'{"owner":"w-1"}', 140, "w-1"), said(2, position, b'{"read_to":1}', 150)]
    list(slot.take([*said_by_one, said(3, group, b'{"confirmed":false}', 900), said(4, position, None, 901)]))
    assert words.newest == {"w-1": 150}
    # Whom the end of a transaction names has written it, whatever compaction has left in front of it.
    list(slot.take([said(5, position, b'{"read_to":2}', 950, "w-2"), said(6, position, b'{"read_to":3}', 960)]))
    assert words.newest == {"w-1": 150, "w-2": 960}


def test_messages_come_in_runs_of_one_partition() -> None:
    messages = [message(at, b"k", partition=number) for at, number in enumerate((1, 1, 0, 1))]
    assert [(slot, len(run)) for slot, run, _ in runs(messages)] == [(1, 2), (0, 1), (1, 1)]
    assert [(slot, len(run)) for slot, run, _ in runs(messages[:2])] == [(1, 2)]
    assert list(runs([])) == []


def test_patience_is_for_silence_and_not_for_the_whole() -> None:
    now = 0.0
    patience = Patience(10, lambda: now)
    for _ in range(5):
        now += 9
        assert not patience.over
        patience.renew()
    now += 10
    assert patience.over
