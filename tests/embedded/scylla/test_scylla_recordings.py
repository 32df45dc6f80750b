"""Recordings: read from files, played on the double, compared. The given ones are replayed by another file."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connector.cli.main import run
from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.recordings.files import (
    Answers,
    Histories,
    RecordingError,
    Seeded,
    Write,
    read_recording,
    write_recording,
)
from embedded.scylla.recordings.random_writes import random_recording
from embedded.scylla.recordings.record import script
from embedded.scylla.recordings.replay import replay
from embedded.scylla.recordings.scripted import play_answers, play_histories
from embedded.scylla.recordings.seeded import play_seeded
from embedded.scylla.recordings.server import Address, Server
from embedded.scylla.recordings.shapes import answer_shape, supported_shapes
from tests.embedded.scylla.certificates import certificate
from tests.house import ROOT

FLOOR = 1_767_225_600_000_000
INSERT = "INSERT INTO rec.t (pk, ck, v, l) VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
DELETE = "DELETE FROM rec.t USING TIMESTAMP ? WHERE pk = ? AND ck > ?"


def number(value: int, size: int = 4) -> str:
    return value.to_bytes(size, "big", signed=True).hex()


def insert(pk: int, ck: int, v: int | None, at: int) -> tuple[str, list[str | None]]:
    elements = "0000000200000001610000000162"
    return INSERT, [number(pk), number(ck), None if v is None else number(v), elements, number(FLOOR + at, 8)]


def small(tablets: bool = False) -> Seeded:
    """Two tables, one without a log; a batch over two partitions, a tie, and a time that goes back."""
    cdc = "cdc = {'enabled': true, 'preimage': true, 'postimage': true}"
    return Seeded(
        keyspace="rec",
        tablets=tablets,
        floor=FLOOR,
        types={"addr": [["street", "text"], ["zip", "int"]]},
        creates=[
            (
                "t",
                f"CREATE TABLE rec.t (pk int, ck int, v int, l list<text>, u addr, PRIMARY KEY ((pk), ck)) WITH {cdc}",
            ),
            ("none", "CREATE TABLE rec.none (pk int PRIMARY KEY)"),
        ],
        writes=[
            Write("insert", [insert(1, 1, 7, 10)]),
            Write("batch", [insert(1, 2, None, 20), insert(2, 2, 5, 21)]),
            Write("batch", [insert(1, 3, 1, 30), insert(2, 3, 5, 30)]),
            Write("insert", [insert(1, 1, 8, 5)]),
            Write("delete-range", [(DELETE, [number(FLOOR + 40, 8), number(1), number(1)])]),
        ],
    )


@pytest.fixture
def server(scylla: EmbeddedScylla) -> Any:
    with Server(Address(scylla.host, scylla.port)) as server:
        yield server


@pytest.mark.parametrize("tablets", [False, True])
def test_what_was_played_replays_without_a_difference(server: Server, tmp_path: Path, tablets: bool) -> None:
    played = play_seeded(server, small(tablets))
    assert [write.answer for write in played.writes] == ["ok"] * 5
    assert sorted(played.logs["t"])[0] == (("1",), FLOOR + 5)
    assert [row["op"] for row in played.logs["t"][("1",), FLOOR + 10][0]] == [2, 9]
    assert len(played.rows["t"]) == 3 and played.logs["none"] == {}
    for name in ("small.jsonl", "small.jsonl.gz"):
        write_recording(played, tmp_path / name)
        found = replay(server, read_recording(tmp_path / name))
        assert found.differences == []
        assert found.compared == {"statements": 7, "answers": 5, "log rows": 15, "base rows": 3}


def test_every_kind_of_difference_is_told(server: Server) -> None:
    played = play_seeded(server, small())
    log = played.logs["t"]
    changed = copy.deepcopy(played)
    changed.logs["t"][("1",), FLOOR + 10][0][0]["op"] = 1
    del changed.logs["t"][("2",), FLOOR + 21]
    changed.logs["t"][("9",), FLOOR + 99] = log[("2",), FLOOR + 30]
    changed.rows["t"][0] = changed.rows["t"][0].replace('"v": 7', '"v": 9').replace('"v": 8', '"v": 9')
    changed.rows["t"].pop()
    changed.writes[0] = Write("insert", changed.writes[0].statements, {"error": "InvalidRequest", "message": "no"})
    found = replay(server, changed)
    assert [each.kind for each in found.differences].count("log") == 5
    assert sorted({each.kind for each in found.differences}) == ["answer", "log", "row"]
    assert "INSERT INTO rec.t" in found.differences[0].place
    told = "\n".join(each.text() for each in found.differences)
    assert "differs in op" in told and "differs in v" in told
    assert "t (1) at" in told and "t (2) at" in told and "t (9) at" in told and "t [2, 3]" in told


def test_roles_that_a_login_may_make_are_gone_afterwards(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The double has no roles: what a superuser is answered is put in their place."""
    asked: list[str] = []
    real_ask, real_run = server.ask, server.run

    def ask(text: str, *spelling: Any) -> dict[str, Any]:
        if "ROLE" not in text:
            return real_ask(text, *spelling)
        asked.append(text)
        return {"error": "InvalidRequest", "message": "there"} if "other" in text else {"columns": [], "rows": []}

    def run(text: str) -> None:
        asked.append(text) if "ROLE" in text else real_run(text)

    monkeypatch.setattr(server, "ask", ask)
    monkeypatch.setattr(server, "run", run)
    refused = {"error": "Unauthorized", "message": "You have to be logged in"}
    statements = [{"statement": f"CREATE ROLE {name} WITH PASSWORD = 'x'", **refused} for name in ("x", "other")]
    play_answers(server, Answers(statements, {}, {}, {}, False))
    assert asked == [*(each["statement"] for each in statements), "DROP ROLE IF EXISTS x"]


def test_keyspaces_are_gone_afterwards(server: Server, scylla: EmbeddedScylla) -> None:
    def keyspaces() -> set[str]:
        return {name for (name,) in server.texts("SELECT keyspace_name FROM system_schema.keyspaces")}

    before = keyspaces()
    simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    another = {"statement": f"CREATE KEYSPACE {{k}}x WITH replication = {simple}"}
    assert play_answers(server, Answers([another], {}, {}, {}, False)).answers[0]["rows"] == []
    with pytest.raises(RuntimeError), server.keyspace(False):
        raise RuntimeError
    assert keyspaces() == before


def test_histories_have_columns_answers_and_dropped_logs(server: Server, tmp_path: Path) -> None:
    texts = [
        "CREATE TABLE {k}.t (pk int PRIMARY KEY, v int, l list<int>) WITH cdc = {'enabled': true}",
        "INSERT INTO {k}.t (pk, l) VALUES (1, [4, 5])",
        "UPDATE {k}.t SET v = 1 WHERE pk = 1 IF l = [4, 5]",
        "SELECT nothing FROM {k}.t",
        "DROP TABLE {k}.t",
        "CREATE TABLE {k}.t (pk int PRIMARY KEY) WITH cdc = {'enabled': true}",
    ]
    history = Histories("rec", False, [{"statement": text} for text in texts], {})
    played = play_histories(server, history)
    assert played.logs.keys() == {"t", "t, dropped"}
    assert [row["values"]["l"] for row in played.logs["t, dropped"]["[1]"]] == [[4, 5], None]
    assert played.statements[2]["rows"] == [[True, [4, 5]]]
    assert played.statements[3]["message"].endswith('message="Unrecognized name nothing"')
    write_recording(played, tmp_path / "history.json.gz")
    found = replay(server, read_recording(tmp_path / "history.json.gz"))
    assert found.differences == [] and found.compared["columns"] > 50


@pytest.mark.parametrize(("kind", "sort"), [("seeded", "--tablets"), ("seeded", "--vnodes"), ("answers", "--tablets")])
def test_what_is_recorded_replays(
    scylla: EmbeddedScylla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, sort: str
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["embedded", "record", scylla.address, "--kind", kind, "--seed", "7", "--statements", "200", sort]
    assert run(command) == 0
    (file,) = tmp_path.iterdir()
    assert run(["embedded", "replay", str(file), scylla.address]) == 0
    assert run([*command, "--out", "again"]) == 0
    if kind == "seeded":
        # No time, no name and no address of the one server is in it.
        assert gzip.decompress(file.read_bytes()) == (tmp_path / "again").read_bytes()


def test_generated_writes_have_every_form_of_the_given_recordings() -> None:
    def forms(recording: Seeded) -> set[str]:
        found = {write.kind for write in recording.writes}
        for write in recording.writes:
            found.add(f"a batch of {len(write.statements)}")
            for text, _ in write.statements:
                names = re.sub(r"[a-z]\w*(?=[ ,.)\[])", "c", text.split("USING")[0] if "DELETE" in text else text)
                found |= set(re.findall(r"c = c [+-]|c = \? \+|c\.c =|USING TTL 86400|[<>]=?", names + text))
                found.add(text.split()[0])
        return found

    given: set[str] = set()
    types: set[str] = set()
    for file in sorted((ROOT / "tests/recordings/2026.1").glob("*.jsonl.gz")):
        recording = read_recording(file)
        assert isinstance(recording, Seeded)
        given |= forms(recording)
        creates = "".join(text for _, text in recording.creates)
        types |= set(re.findall(r"\w ([a-z]+(?:<.*?>+)?)(?: static)?,", creates))
    made = [random_recording(seed, tablets=False) for seed in range(1, 5)]
    assert given - set().union(*map(forms, made)) == set()
    texts = "".join(text for each in made for _, text in each.creates)
    assert "map<text, int>" in types and {each for each in types if f" {each}," not in texts} == set()


def test_statements_of_answers_and_histories_are_those_of_the_given_recordings() -> None:
    for sort in ("vnodes", "tablets"):
        answers = read_recording(ROOT / f"tests/recordings/2026.1/answers-{sort}.json")
        histories = read_recording(ROOT / f"tests/recordings/2026.1/histories-{sort}.json.gz")
        assert isinstance(answers, Answers) and isinstance(histories, Histories)
        assert answers.tablets == histories.tablets == (sort == "tablets")
        assert script("answers") == [each["statement"] for each in answers.answers]
        assert script("histories") == [each["statement"] for each in histories.statements]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda content: content[: len(content) // 2], "it ends too early"),
        (lambda content: content[:300] + bytes(50) + content[350:], "is damaged"),
        (lambda content: b"", "is empty"),
        (lambda content: gzip.compress(b"\xff\xfe"), "line 1: recording: not UTF-8"),
        (lambda content: gzip.compress(b'{"keyspace": "k"}\n{"create": 1'), "line 2: recording: not JSON"),
        (
            lambda content: gzip.compress(b'{"keyspace": "k"}\n{"what": 1}'),
            "line 2: recording: not a line of a recording",
        ),
        (lambda content: gzip.compress(b'{"version": "1"}'), 'has no "keyspace"'),
        (lambda content: gzip.compress(b'{"keyspace": "k", "format": 9}'), "a newer scylla-cdc made it"),
        (lambda content: b"[1, 2]", "not a recording"),
        (lambda content: b'{"answers": [1]}', "entry 1 has no statement"),
        (lambda content: b"CREATE TABLE t", "line 1: recording: not JSON"),
    ],
)
def test_what_is_no_recording_is_named(
    tmp_path: Path, spoil: Callable[[bytes], bytes], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = small()
    recording.rows = {"t": [], "none": []}
    file = tmp_path / "some.jsonl.gz"
    write_recording(recording, file)
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(RecordingError):
        read_recording(file)
    assert run(["embedded", "replay", str(file), "127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert told in said and str(file) in said


def test_optional_fields_may_be_missing(tmp_path: Path) -> None:
    lines = [
        {"keyspace": "k"},
        {"create": "CREATE TABLE k.t (pk int PRIMARY KEY)", "table": "t"},
        {"statements": [["INSERT INTO k.t (pk) VALUES (?) USING TIMESTAMP ?", ["00000001", number(FLOOR, 8)]]]},
        {"table": "t", "rows": [{"pk": 1}]},
    ]
    file = tmp_path / "lean.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    recording = read_recording(file)
    assert isinstance(recording, Seeded)
    assert (recording.tablets, recording.types, recording.writes[0].answer) == (False, {}, "ok")


def test_the_machine_is_no_difference() -> None:
    def shaped(host: str, ident: str) -> dict[str, Any]:
        message = f'<Host: {host} dc>: <Error from server: code=0000 message="for table {ident}.">'
        answer = {
            "error": "NoHostAvailable",
            "message": f"('Unable to complete the operation against any hosts', {{{message}}})",
        }
        return answer_shape(answer)

    left = shaped("127.0.0.1:9542", "43dd79b2-e67b-11f1-a425-94349d6f459b")
    assert left == shaped("10.0.0.1:9042", "00000000-e67b-11f1-a425-94349d6f459b")
    assert left["message"] == '<Error from server: code=0000 message="for table <uuid>.">'
    waits = [
        answer_shape({"error": "InvalidRequest", "message": f"Please retry after {left} seconds"}) for left in (4, 5)
    ]
    assert waits[0] == waits[1] != answer_shape({"error": "InvalidRequest", "message": "Please retry after it"})
    columns = ["pk", "writetime(v)"]
    same = [answer_shape({"columns": columns, "rows": [[1, at]]}) for at in (1795355162945683, 1795355256429292)]
    assert same[0] == same[1] != answer_shape({"columns": columns, "rows": [[2, 1795355162945683]]})
    assert same[0] != answer_shape({"columns": columns, "rows": [[1, None]]})


def test_partitions_may_be_spelled_before_or_after_repr(server: Server) -> None:
    table = "CREATE TABLE rec.t (pk uuid, b blob, d double, PRIMARY KEY ((pk, b, d))) WITH cdc = {'enabled': true}"
    ident, half = "43dd79b2-e67b-11f1-a425-94349d6f459b", "3fe0000000000000"
    insert = "INSERT INTO rec.t (pk, b, d) VALUES (?, ?, ?) USING TIMESTAMP ?"
    write = Write("insert", [(insert, [ident.replace("-", ""), "00ff", half, number(FLOOR, 8)])])
    played = play_seeded(server, Seeded("rec", False, FLOOR, {}, [("t", table)], [write]))
    (place,) = played.logs["t"]
    assert place == ((f"UUID('{ident}')", r"b'\x00\xff'", "0.5"), FLOOR)
    played.logs["t"] = {((repr(place[0][0]), "'0x00ff'", "'0.5'"), FLOOR): played.logs["t"][place]}
    assert replay(server, played).differences == []


def test_servers_with_login_and_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate_file, key_file = certificate(tmp_path, "server")
    monkeypatch.setenv("SCYLLA_PASSWORD", "secret")
    out = str(tmp_path / "some.jsonl")
    with EmbeddedScylla(
        ring_delay=0, user="u", password="secret", tls_cert=certificate_file, tls_key=key_file
    ) as scylla:
        command = ["embedded", "record", scylla.address, "--statements", "9", "--out", out]
        tls = ["--tls-ca", str(certificate_file)]
        assert run([*command, *tls, "--user", "u"]) == 0
        assert run(["embedded", "replay", out, scylla.address, *tls, "--user", "u"]) == 0
        assert run([*command, *tls, "--user", "v"]) == 1
        assert "refuses the login of v" in capsys.readouterr().err
        monkeypatch.setenv("SCYLLA_PASSWORD", "wrong")
        assert run([*command, *tls, "--user", "u"]) == 1
        assert "wrong" not in capsys.readouterr().err
        assert run([*command, "--user", "u", "--tls"]) == 1
        assert run([*command, "--tls-ca", out, "--user", "u"]) == 2


def test_a_server_without_tablets_or_rights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = small(tablets=True)
    recording.rows = {"t": [], "none": []}
    write_recording(recording, tmp_path / "some.jsonl")
    with EmbeddedScylla(ring_delay=0) as scylla:
        replayed = ["embedded", "replay", str(tmp_path / "some.jsonl"), scylla.address]
        recorded = ["embedded", "record", scylla.address, "--statements", "9", "--out", str(tmp_path / "other")]
        scylla.admin.add_fault(action="invalid", pattern="tablets = ", message="Unknown property 'tablets'")
        assert run(replayed) == 0
        said = capsys.readouterr().out
        assert "skipped: the server cannot make a keyspace with tablets: Unknown property 'tablets'" in said
        assert "0 recordings replayed: 0 differences; 1 skipped" in said
        assert run([*recorded, "--tablets"]) == 1
        assert "cannot make a keyspace with tablets" in capsys.readouterr().err
        assert run(recorded) == 0
        scylla.admin.add_fault(
            action="unauthorized", pattern="CREATE KEYSPACE", message="User u has no CREATE permission"
        )
        assert run(recorded) == 1
        assert "grant it CREATE on ALL KEYSPACES" in capsys.readouterr().err


def test_a_server_that_goes_away_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedScylla(ring_delay=0) as scylla:
        scylla.admin.add_fault(action="drop", pattern="INSERT INTO")
        assert run(["embedded", "record", scylla.address, "--out", str(tmp_path / "other")]) == 1
        assert f"{scylla.address} stopped answering at 'INSERT INTO" in capsys.readouterr().err
        assert not (tmp_path / "other").exists()
        keyspaces = scylla.admin.cql("SELECT keyspace_name FROM system_schema.keyspaces")["rows"]
        assert [name for (name,) in keyspaces if name.startswith("recording_")] == []


def test_what_is_offered_is_compared_but_for_ports_and_shards() -> None:
    recorded = {"SCYLLA_SHARD": ["0"], "SCYLLA_SHARD_AWARE_PORT": ["1"], "CQL_VERSION": ["3.3.1"], "A": [""]}
    played = {"SCYLLA_SHARD": ["1"], "CQL_VERSION": ["3.4.0"], "SCYLLA_SHARD_AWARE_PORT_SSL": ["2"]}
    shapes = [shapes for shapes in supported_shapes(recorded, played) if shapes[1] != shapes[2]]
    assert shapes == [("CQL_VERSION", ["3.3.1"], ["3.4.0"]), ("A", [""], None)]


def test_the_command_tells_and_ends_as_it_should(
    scylla: EmbeddedScylla, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = play_seeded(server, small())
    good, bad = tmp_path / "good.jsonl.gz", tmp_path / "bad.jsonl.gz"
    write_recording(played, good)
    played.rows["t"].pop()
    write_recording(played, bad)
    assert run(["embedded", "replay", str(good), scylla.address]) == 0
    said = capsys.readouterr().out
    assert "15 log rows, 3 base rows: 0 differences" in said and "1 recording replayed: 0 differences" in said
    assert run(["embedded", "replay", str(good), str(bad), scylla.address, "--json"]) == 1
    (told,) = capsys.readouterr().out.splitlines()
    result = json.loads(told)
    assert result["differences"] == 1
    assert [len(each["differences"]) for each in result["recordings"]] == [0, 1]
    assert result["recordings"][1]["differences"][0]["got"]["pk"] in (1, 2)
    assert run(["embedded", "replay", str(bad), scylla.address, "--limit", "0"]) == 1
    assert "and 1 more" in capsys.readouterr().out


def test_wrong_use_and_servers_out_of_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "some.jsonl"
    recording = small()
    recording.rows = {"t": [], "none": []}
    write_recording(recording, file)
    for arguments in (["127.0.0.1:x"], ["a:1,b:1"], ["127.0.0.1:1", "--tls-key", "k"], ["127.0.0.1:1", "--user", "u"]):
        assert run(["embedded", "replay", str(file), *arguments]) == 2, arguments
    assert run(["embedded", "replay", str(tmp_path / "none"), "127.0.0.1:1"]) == 2
    assert "No such file" in capsys.readouterr().err
    assert run(["embedded", "replay", str(file), "127.0.0.1:1"]) == 1
    assert "cannot reach a server at 127.0.0.1:1" in capsys.readouterr().err
