"""Positions of `connect-standalone`: files that Java 17 wrote with an ObjectOutputStream, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import CdcError
from connector.worker.java_offsets import java_offsets
from connector.worker.java_positions_file import read_positions_file

FILES = Path(__file__).parent / "positions"


def test_the_offsets_of_a_connector_are_read_as_from_the_topic() -> None:
    values = read_positions_file(FILES / "standalone.offsets")
    assert len(values) == 21
    assert values['["other",{"file":"ä"}]'.encode()] == b'{"position":5}'
    problems: list[str] = []
    offsets = sorted(java_offsets(values, "shop", problems), key=lambda one: one.vnode)
    # One of them is null, as for a partition whose offset was taken back.
    assert [one.vnode for one in offsets] == [vnode for vnode in range(20) if vnode != 7]
    assert {str(one.table) for one in offsets} == {"ks.orders", "ks.items"}
    assert {one.generation for one in offsets} == {1700000000000}
    assert not problems


def test_arrays_that_are_in_the_map_more_than_once() -> None:
    assert read_positions_file(FILES / "shared.offsets") == {b"a": b'{"position":5}', b"b": b'{"position":5}'}


def test_a_map_without_entries() -> None:
    assert read_positions_file(FILES / "empty.offsets") == {}


def refused(path: Path) -> str:
    with pytest.raises(CdcError) as caught:
        read_positions_file(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_other_files_are_refused_with_the_place_where_they_differ(tmp_path: Path) -> None:
    assert "at byte 0 should be a HashMap" in refused(FILES / "tree.offsets")
    assert "at byte 81 is no array of bytes" in refused(FILES / "texts.offsets")
    (tmp_path / "json").write_text('{"shop": 1}')
    assert "at byte 0 should be a HashMap" in refused(tmp_path / "json")
    (tmp_path / "empty").touch()
    assert "it is empty" in refused(tmp_path / "empty")
    assert "No such file" in refused(tmp_path / "none")
    assert "Is a directory" in refused(tmp_path)


def test_no_damaged_file_is_taken_for_a_whole_one(tmp_path: Path) -> None:
    whole = (FILES / "shared.offsets").read_bytes()
    path = tmp_path / "cut"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        refused(path)
    path.write_bytes(whole + b"p")
    assert f"something follows behind the map, at byte {len(whole)}" in refused(path)
    count = whole.index(b"w\x08") + 6
    for wrong in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x02", b"\x00\x00\x00\x04"):
        path.write_bytes(whole[:count] + wrong + whole[count + 4 :])
        refused(path)
    # References to what is no array, or not there.
    for number in (0, 1, 2, 9):
        at = whole.rindex(b"q\x00\x7e\x00")
        path.write_bytes(whole[: at + 4] + bytes((number,)) + whole[at + 5 :])
        refused(path)
