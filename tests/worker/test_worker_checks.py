"""Who does not answer is shown while it is waited for, and hides nothing of the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import pytest

from connector.changes import CdcOptions, Column, TableDescription
from connector.delivery import GroupMember, KafkaClients, topic_reader
from connector.errors import (
    AccessDenied,
    ConfigurationError,
    DeliveryError,
    MissingRight,
    Problem,
    ReplicasAway,
    RetriableDeliveryError,
    RightMissing,
)
from connector.source import Connection, ConnectionSettings, DescribedTable
from connector.source.failures import translated
from connector.source.log_reader import LogTable
from connector.table_name import TableName
from connector.values import native
from connector.worker import checks, objections, process, source_checks, starting
from connector.worker.findings import ADDRESSES, KAFKA, Findings
from connector.worker.lost_positions import lost_positions
from connector.worker.messages import Message, WaitingMessage
from connector.worker.slots import Noted
from tests.config.files import loaded
from tests.servers.mock_kafka import mock_kafka
from tests.servers.patience import until
from tests.servers.scylla import Scylla


@dataclass
class Shown:
    waiting_for: str | None = "starting"


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A server's, until it is set."""
    monkeypatch.setattr(checks, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(process, "SILENT_SECONDS", 0.05)
    ends = threading.Event()
    yield ends
    ends.set()


def test_who_is_silent_is_named_beside_who_refuses(
    monkeypatch: pytest.MonkeyPatch, silence: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(checks, "check_kafka", lambda *_: silence.wait())
    source, kafka = "127.0.0.1:1", "127.0.0.1:2"
    configuration = loaded({"scylla.cluster.ip.addresses": source}, {"bootstrap.servers": kafka})
    shown, stop = Shown(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(checks.wait_until_checked, configuration, stop, shown)
        try:
            words = (f"connecting to {source}", "refused", f"Kafka at {kafka}: no answer yet", "since 20")
            until(lambda: all(word in (shown.waiting_for or "") for word in words), what=lambda: f"{words} in {shown}")
            logged = "waiting for servers: "
            until(lambda: [each for each in caplog.messages if logged in each and kafka in each], what=logged)
            assert not found.done()
        finally:
            stop.set()
        assert found.result() == [], "it ends although nobody answers"


A, B, C = (TableName("ks", each) for each in "abc")
ALL = {"scylla.table.names": "ks.a,ks.b,ks.c"}


@pytest.mark.parametrize(
    ("missing", "read", "others", "refused"),
    [
        ((B,), {A, B}, (), ()),
        ((B, C), {A, B}, (), (C,)),
        ((B,), {A}, (), (B,)),
        ((B,), None, (), (B,)),
        ((A, B, C), {A, B, C}, (), (A, B, C)),
        ((B,), {A, B}, (A,), (A, B)),
    ],
)
def test_a_table_that_is_missing_and_was_read_before_fails_alone_beside_others(
    missing: tuple[TableName, ...],
    read: set[TableName] | None,
    others: tuple[TableName, ...],
    refused: tuple[TableName, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = {table: Problem(objections.TABLES, f"table {table} does not exist") for table in missing}
    wrong = [Problem(objections.TABLES, f"table {table} does not have CDC enabled") for table in others]
    monkeypatch.setattr(checks, "_checked", lambda *_: Findings(missing=gone, problems=wrong))
    noted = None if read is None else Noted(25, frozenset(read))
    for way in ("slots_by_marks", "marks_now"):
        monkeypatch.setattr(checks, way, lambda *_: noted)
    found = checks.wait_until_checked(loaded(ALL), threading.Event(), Shown())
    assert [problem.problem.split()[1] for problem in found] == [*map(str, refused)]
    monkeypatch.setattr(checks, "check", lambda *_: Findings(missing=gone, problems=wrong))
    assert len(checks.live_problems(loaded(ALL))) == len(gone) + len(wrong), "validate says all"


@pytest.mark.parametrize("read", [True, False])
def test_a_table_whose_cdc_was_switched_off_keeps_no_other_from_its_start(
    read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log has what was not read yet."""
    off, on = (
        DescribedTable(
            TableDescription(table.keyspace, table.name, "1", (), cdc=CdcOptions(enabled=enabled)),
            True,
            LogTable(table.keyspace, f"{table.name}_scylla_cdc_log"),
            (),
        )
        for table, enabled in ((A, False), (B, True))
    )
    monkeypatch.setattr(source_checks, "_check_scylla", lambda *_: [off, on])
    monkeypatch.setattr(checks, "check_kafka", lambda *_: None)
    monkeypatch.setattr(checks, "marks_now", lambda *_: Noted(25, frozenset({A} if read else {B})))
    found = checks.wait_until_checked(loaded({"scylla.table.names": "ks.a,ks.b"}), threading.Event(), Shown())
    assert [problem.problem for problem in found] == ([] if read else ["table ks.a does not have CDC enabled"])


@pytest.mark.parametrize(
    ("options", "how"),
    [
        (CdcOptions(), "'preimage': true, 'postimage': true"),
        (CdcOptions(preimage="full", ttl=259_200), "'preimage': 'full', 'postimage': true, 'ttl': 259200"),
        (
            CdcOptions(postimage=True, delta="keys", ttl=0),
            "'preimage': true, 'postimage': true, 'delta': 'keys', 'ttl': 0",
        ),
        (CdcOptions(enabled=False, preimage="true", ttl=90_000), "'preimage': true, 'ttl': 90000"),
    ],
)
def test_what_mends_a_table_leaves_it_its_other_options(options: CdcOptions, how: str) -> None:
    """ALTER TABLE sets back what it does not name: a log that lives for three days would live for one."""
    log = LogTable("ks", "a_scylla_cdc_log")
    table = DescribedTable(TableDescription("ks", "a", "1", (), cdc=options), True, log, ())
    wanted = {"cdc.output.format": "advanced", "cdc.include.before": "full", "cdc.include.after": "full"}
    (problem,) = objections.objections(loaded({"scylla.table.names": "ks.a"} | wanted), table)
    assert problem.suggestion == f"ALTER TABLE ks.a WITH cdc = {{'enabled': true, {how}}}"


def test_whether_a_missing_table_was_read_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {B: Problem(objections.TABLES, "it does not exist")}
    answers = [
        Findings(missing=gone, unreachable=[Problem(KAFKA, "unable to reach Kafka")]),
        Findings(missing=gone),
    ]
    monkeypatch.setattr(checks, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(checks, "_checked", lambda *_: answers.pop(0))
    monkeypatch.setattr(checks, "marks_now", lambda *_: Noted(25, frozenset({B})))
    answers[-1].warnings.append("something is as it should not be")
    warnings = list[str]()
    assert checks.wait_until_checked(loaded(ALL), threading.Event(), Shown(), warnings) == [] and not answers
    assert warnings == ["something is as it should not be"], "for the status: what is logged at the start is not read"


def test_a_start_whose_login_is_refused_looks_at_what_it_logs_in_with_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, right = loaded(), loaded({"tasks.max": "3"})
    asked: list[Any] = []

    def kafka(configuration: Any, *given: Any) -> None:
        asked.append(configuration)
        found = given[-1]
        if configuration == wrong:
            found.refused = len(asked) > 1
            found.unreachable.append(Problem(KAFKA, "unable to reach Kafka"))

    monkeypatch.setattr(checks, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(checks, "check_kafka", kafka)
    monkeypatch.setattr(source_checks, "_check_scylla", lambda *_: [])
    assert checks.wait_until_checked(wrong, threading.Event(), Shown(), [], lambda before: right) == []
    assert asked == [wrong, wrong, right], "a broker that is away is no reason to"


def test_rights_that_are_missing_at_the_start_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has just started it looks at what it says."""
    right = MissingRight("offset.storage.topic", "topic cannot be created", "offsets", "grant READ on it")

    def marks_now(*_: object) -> Noted:
        raise RightMissing("reading topic offsets: refused")

    answers = [Findings(problems=[right]), Findings(missing={B: Problem(objections.TABLES, "it does not exist")})]
    monkeypatch.setattr(checks, "_checked", lambda *_: answers.pop(0))
    monkeypatch.setattr(checks, "marks_now", marks_now)
    told = [*checks.wait_until_checked(loaded(ALL), threading.Event(), Shown())]
    told += checks.wait_until_checked(loaded(ALL), threading.Event(), Shown())
    assert told == [right, Problem("offset.storage.topic", "reading topic offsets: refused", "positions")]
    monkeypatch.setattr(checks, "check", lambda *_: Findings(problems=[right]))
    monkeypatch.setattr(checks, "slots_by_marks", lambda *_: None)
    assert checks.live_problems(loaded(ALL)) == [right], "validate refuses"


def test_a_worker_that_begins_without_a_right_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that loses it: whoever takes the place of a worker that was killed is no other case."""
    configuration, admin = loaded(), KafkaClients({"bootstrap.servers": "127.0.0.1:2"})
    offsets = configuration.connector.delivery.offset_topic
    data = Problem("topic.prefix", "Kafka takes no such name", "shop.ks.t")
    problems = [MissingRight("offset.storage.topic", "refused", offsets), data]
    said: list[Message] = []

    def prepare_topics(*_: object) -> Any:
        if len(said) < 2:
            raise ConfigurationError(problems)
        return {}, {}

    monkeypatch.setattr(process, "prepare_topics", prepare_topics)
    call = partial(process._topics, admin, configuration, ())
    assert process._patiently("preparing topics", call, threading.Event(), said.append, admin) == ({}, {})
    assert [type(each) for each in said] == 2 * [WaitingMessage] and "refused" in str(said[0])
    problems[1] = Problem("offset.storage.topic", "the topic is not compacted", offsets)
    said.clear()
    with pytest.raises(ConfigurationError, match="not compacted"):
        process._patiently("preparing topics", call, threading.Event(), said.append, admin)


def test_a_worker_that_begins_with_a_refused_login_waits_until_it_is_accepted() -> None:
    """As a running one does whose password is changed: it may have taken the place of one that was killed."""
    said: list[Message] = []
    source = Connection(ConnectionSettings((("db", 9042),)))

    def connect() -> str:
        if len(said) < 2:
            raise AccessDenied("connecting to db:9042: login refused: Username and/or password are incorrect")
        return "connected"

    assert process._patiently("connecting to ScyllaDB", connect, threading.Event(), said.append, source) == "connected"
    assert [type(each) for each in said] == 2 * [WaitingMessage] and "login refused" in str(said[0])


def test_that_kafka_does_not_tell_is_no_word_that_a_table_was_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went away behind the checks, as while its brokers are started one by one."""
    asked: list[str] = []

    def marks_now(*_: object) -> Noted:
        asked.append("marks")
        if len(asked) == 1:
            raise RetriableDeliveryError("listing topics: _TIMED_OUT")
        return Noted(25, frozenset({B}))

    gone = {B: Problem(objections.TABLES, "it does not exist")}
    monkeypatch.setattr(checks, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(checks, "_checked", lambda *_: Findings(missing=gone))
    monkeypatch.setattr(checks, "marks_now", marks_now)
    shown = Shown()
    assert checks.wait_until_checked(loaded(ALL), threading.Event(), shown) == []
    assert len(asked) == 2 and "listing topics" in str(shown.waiting_for)


def test_validate_gives_up_a_kafka_that_never_comes_to_an_end_and_says_for_whom_it_waits(
    monkeypatch: pytest.MonkeyPatch, silence: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """As one that answers byte by byte: each of librdkafka's limits counts for one of its questions."""
    monkeypatch.setattr(checks, "check_kafka", lambda *_: silence.wait())
    monkeypatch.setattr(checks, "KAFKA_SECONDS", 1.0)
    configuration = loaded({"scylla.cluster.ip.addresses": "127.0.0.1:1"}, {"bootstrap.servers": "127.0.0.1:2"})
    with caplog.at_level("INFO", "connector.worker.checks"):
        found = {problem.property: problem for problem in checks.live_problems(configuration)}
    assert found[ADDRESSES].problem.startswith("unable to connect to the ScyllaDB cluster: connecting to")
    words = "unable to reach Kafka: Kafka at 127.0.0.1:2: not all was answered in 1 s"
    assert (found["bootstrap.servers"].problem, found["bootstrap.servers"].value) == (words, "127.0.0.1:2")
    assert [text for text in caplog.messages if "Kafka at 127.0.0.1:2: no answer yet" in text]


def test_a_worker_says_for_whose_first_answer_it_waits(
    silence: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[Message] = []
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        source = Connection(ConnectionSettings((("db", 9042),)))
        asked = pool.submit(process._patiently, "connecting to ScyllaDB", silence.wait, stop, said.append, source)
        try:
            until(lambda: said, what="a word of it")
            assert said == [WaitingMessage(doing="connecting to ScyllaDB", error="db:9042: no answer yet")]
            until(lambda: "connecting to ScyllaDB: db:9042: no answer yet" in caplog.messages, what="a line of it")
        finally:
            stop.set()
        with pytest.raises(process.Stopped):
            asked.result()


def test_records_without_values_are_told() -> None:
    """Of keys alone only images tell more."""
    log = LogTable("ks", "a_scylla_cdc_log")
    options = CdcOptions(preimage="full", postimage=True, delta="keys")
    table = DescribedTable(TableDescription("ks", "a", "1", (), cdc=options), True, log, ())
    (said,) = source_checks._untold(loaded(), [table])
    assert "records have no values: ALTER TABLE ks.a WITH cdc = {'enabled': true, 'preimage': 'full', 'post" in said
    advanced = {"cdc.output.format": "advanced", "cdc.include.before": "full", "cdc.include.after": "full"}
    assert not source_checks._untold(loaded(advanced), [table])


class Denying(Connection):
    """A login that may read logs, and of the tables nothing but the first one."""

    def query(self, text: str, *_: Any, **__: Any) -> list[dict[str, Any]]:
        if " FROM ks.a " not in text:
            raise AccessDenied("User ann has no SELECT permission")
        return []


@pytest.mark.parametrize(("mode", "told"), [("initial", True), ("when_needed", True), ("no_data", False)])
def test_rows_that_a_snapshot_may_not_read_are_told(mode: str, told: bool) -> None:
    key = Column("id", native("int"), "partition_key", 0)
    tables = [
        DescribedTable(TableDescription("ks", name, "1", (key,)), True, LogTable("ks", f"{name}_scylla_cdc_log"), ())
        for name in "ab"
    ]
    asked = Denying(ConnectionSettings((("db", 9042),)))
    warnings = source_checks._refused_rows(loaded(ALL | {"snapshot.mode": mode}), asked, tables)
    told_words = (
        f"ks.b has no rows for snapshot.mode={mode}, which reads the table itself: User ann has no SELECT permission"
    )
    assert warnings == ([told_words] if told else [])


class Lacking(Denying):
    """Nobody who holds the last token of ``ks.b``, or of its log, is there, nor are most who hold generations."""

    def host_count(self) -> int:
        return 3

    def query(self, text: str, *_: Any, **__: Any) -> list[dict[str, Any]]:
        if " FROM ks.b" in text or " FROM system_distributed." in text:
            raise ReplicasAway("too few replicas are up: ONE needs 1, 0 are")
        return [] if " FROM system_schema." in text else super().query(text)


def test_replicas_that_are_away_keep_no_table_from_its_start() -> None:
    key = Column("id", native("int"), "partition_key", 0)
    away, denied = (
        DescribedTable(TableDescription("ks", name, "1", (key,)), True, LogTable("ks", f"{name}_scylla_cdc_log"), ())
        for name in "bc"
    )
    asked, found = Lacking(ConnectionSettings((("db", 9042),))), Findings()
    assert source_checks._readable(asked, away.table, away, found) is away
    assert source_checks._readable(asked, denied.table, denied, found) is None
    assert [problem.value for problem in found.problems] == ["ks.c"]
    (told,) = source_checks._refused_rows(loaded(ALL | {"snapshot.mode": "initial"}), asked, [away, denied])
    assert told.startswith("ks.c has no rows for snapshot.mode=initial")
    source_checks._check_streams(asked, [replace(away, tablets=False)], found := Findings())
    assert not found.problems


class Counting(Connection):
    """Counts the questions."""

    asked: ClassVar[list[str]] = []

    def query(self, text: str, *rest: Any, **options: Any) -> list[dict[str, Any]]:
        self.asked.append(text)
        return super().query(text, *rest, **options)


@pytest.mark.scylla
def test_many_tables_are_checked_by_what_their_keyspace_says(
    scylla: Scylla, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keyspace = unique("ks").replace("-", "_")
    scylla.execute(scylla.keyspace_ddl(keyspace, tablets=True))
    names = [f"{keyspace}.t{number}" for number in range(10)]
    for name in names[:9]:
        life = " AND default_time_to_live = 9" if name == names[3] else ""
        scylla.execute(f"CREATE TABLE {name} (id int PRIMARY KEY) WITH cdc = {{'enabled': {name != names[8]}}}{life}")
    monkeypatch.setattr(source_checks, "Connection", Counting)
    Counting.asked = []
    found = Findings()
    source_checks.check_source(loaded({**scylla.properties(), "scylla.table.names": ",".join(names)}), found)
    assert [problem.value for problem in found.missing.values()] == names[8:]
    assert [warning.partition(" has ")[0] for warning in found.warnings] == [names[3]]
    about_tables = [text for text in Counting.asked if "system_schema" in text]
    assert len(about_tables) < len(names), "one of each kind for the keyspace"
    assert sum('"cdc$time"' in text for text in Counting.asked) == 8, "whether each log may be read"


@pytest.mark.scylla
def test_what_is_advised_is_cql_that_works(scylla: Scylla, unique: Callable[[str], str]) -> None:
    keyspace = f"Ks{unique('').replace('-', '_')}"
    scylla.execute(scylla.keyspace_ddl(f'"{keyspace}"', tablets=True))
    scylla.execute(f'CREATE TABLE "{keyspace}"."Order" (id int PRIMARY KEY) WITH cdc = {{\'enabled\': true}}')
    images = {"cdc.output.format": "advanced", "cdc.include.before": "full"}
    given = loaded({**scylla.properties(), **images, "scylla.table.names": f"{keyspace}.Order"})
    found = Findings()
    source_checks.check_source(given, found)
    (problem,) = found.problems
    assert problem.suggestion
    scylla.execute(problem.suggestion)
    source_checks.check_source(given, after := Findings())
    assert not after.problems and not after.missing


class Exhausted(Connection):
    """A process that may start no more threads."""

    def open(self) -> None:
        raise translated(RuntimeError("can't start new thread"), "connecting to db:9042")


def test_what_ails_this_process_is_no_problem_of_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_checks, "Connection", Exhausted)
    source_checks.check_source(loaded(), found := Findings())
    assert not found.problems and "can't start new thread" in found.unreachable[0].problem


@pytest.mark.parametrize("away", ["no leader", "no answer"])
def test_a_topic_that_tells_nothing_keeps_no_run_from_starting(away: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether positions were lost is looked for in the topics of records, and may stay unknown."""
    with mock_kafka(brokers=2) as kafka:
        configuration = loaded(worker={"bootstrap.servers": kafka.bootstrap_servers})
        table = configuration.connector.reading.tables[0]
        topic = configuration.connector.output.names.data_topic(table.keyspace, table.name)
        kafka.create(topic)
        if away == "no leader":
            kafka.leave_leaderless(topic)
        else:
            monkeypatch.setattr(topic_reader, "high_watermarks", unanswered)
        assert lost_positions(configuration) is None


def unanswered(*_: object) -> None:
    raise TimeoutError


def test_whether_a_connector_runs_already_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group whose coordinator is away nobody tells for longer than one question lasts."""
    answers: list[list[GroupMember] | DeliveryError] = [
        RightMissing("no right to describe it"),
        RetriableDeliveryError("describing: no answer"),
        [],
    ]

    def group_members(*_: object) -> list[GroupMember]:
        answer = answers.pop(0)
        if isinstance(answer, DeliveryError):
            raise answer
        return answer

    monkeypatch.setattr(starting, "group_members", group_members)
    monkeypatch.setattr(starting, "PAUSE_SECONDS", 0.0)
    shown, configuration = Shown(), loaded({"snapshot.mode": "always"})
    assert starting.name_of_start(configuration, threading.Event(), shown) is not None and not answers
    assert "describing: no answer" in str(shown.waiting_for)
    answers.append([GroupMember("c-1", "host", frozenset())])
    assert starting.name_of_start(configuration, threading.Event(), shown) is None, "it runs"
    ended = threading.Event()
    ended.set()
    assert starting.name_of_start(configuration, ended, shown) is None
