"""No secret at any exit: a matrix of runs with canaries, in one process where none is needed, and some real ones."""

from __future__ import annotations

import io
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector import secrets
from connector.cli.logs import set_up_logging
from connector.cli.main import run
from connector.cli.output import ConsoleOutput, JsonOutput
from connector.config import Configuration, Secret, load
from connector.errors import CdcError, Problem
from connector.registry import SchemaRegistry
from connector.worker.order import WorkerOrder
from tests.cli.secret_runs import CANARY, FORMS, JAAS, LANDING, OFFLINE, URL, Run
from tests.config.files import CONNECTOR, STORES, WORKER
from tests.registry.registry_server import Registry, served
from tests.servers.patience import patience, until

MODES = ([], ["--json"], ["--debug"])


def clean(*texts: str) -> None:
    for text in texts:
        for form in FORMS:
            assert form not in text, text[max(0, text.index(form) - 300) : text.index(form) + 100]


def written(folder: Path, content: dict[str, Any], name: str) -> str:
    def placed(value: Any) -> Any:
        return (
            value.replace("{stores}", str(STORES)).replace("{folder}", str(folder)) if isinstance(value, str) else value
        )

    beside = content.pop("", {})
    file = folder / name
    config = {name: placed(value) for name, value in content.items()}
    file.write_text(json.dumps({"name": "orders", "config": config, **beside} if beside else config))
    return str(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.properties").write_text(f"k={CANARY}\n")
    (tmp_path / "k").write_text(f"{CANARY}\n")
    return tmp_path


@pytest.mark.parametrize("mode", MODES, ids=("people", "json", "debug"))
@pytest.mark.parametrize("case", OFFLINE, ids=lambda case: case.name)
def test_validate(
    case: Run, mode: list[str], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in case.environ.items():
        monkeypatch.setenv(name, value)
    # What is unknown is a problem in one half of the runs, a notice in the other.
    unknown = {"config.unknown": "error"} if mode else {}
    connector = written(folder, {**CONNECTOR, **unknown, **case.connector}, "c.json")
    worker = written(folder, {**WORKER, **case.worker}, "w.json")
    assert run(["validate", connector, "--worker", worker, "--offline", *mode]) in ((2,) if mode else (0, 2))
    out, err = capsys.readouterr()
    assert case.named in out + err
    clean(out, err)


@pytest.mark.parametrize("password", ["confluent", "debezium", "Confluent"])
def test_asterisks_do_not_tell_the_passwords_of_demos(
    password: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of classes are made of these words: a mask in one would say which password it stands for."""
    classes = {
        "value.converter": "io.confluent.connect.avro.Avro",
        "transforms": "x",
        "transforms.x.type": "io.debezium.transforms.X",
    }
    given = {**CONNECTOR, **classes, "scylla.user": "u", "scylla.password": password}
    assert run(["validate", written(folder, given, "c.json"), "--offline"]) == 2
    said = capsys.readouterr().err
    assert classes["value.converter"] in said and classes["transforms.x.type"] in said
    assert secrets.MASK not in said


@pytest.mark.parametrize("command", ["land", "verify", "backfill", "maintain"])
@pytest.mark.parametrize(("named", "given"), LANDING, ids=lambda given: given if isinstance(given, str) else "")
def test_landing_files(
    command: str,
    named: str,
    given: dict[str, Any],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    content = {
        "name": "j",
        "bootstrap.servers": "127.0.0.1:1",
        "topic.prefix": "p",
        "tables": ["ks.t"],
        "warehouse": "w",
    }
    file = written(folder, {**content, "warehouse": "w", **given}, "landing.json")
    assert run([command, file, "--json"]) == 2
    out, err = capsys.readouterr()
    assert named in out + err
    clean(out, err)


@pytest.mark.parametrize("arguments", [["read", "ks.t", "--scylla", "127.0.0.1:1"], ["read", "ks.t", "--config"]])
@pytest.mark.parametrize("mode", MODES, ids=("people", "json", "debug"))
def test_read_from_nobody(
    arguments: list[str],
    mode: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SCYLLA_PASSWORD", CANARY)
    monkeypatch.setenv("SCYLLA_USER", "u")
    monkeypatch.setenv("ADDRESS", f"{CANARY}.invalid:9042")
    if arguments[-1] == "--config":
        given = {
            **CONNECTOR,
            "scylla.cluster.ip.addresses": "${env:ADDRESS}",
            "scylla.user": "u",
            "scylla.password": "x1",
        }
        arguments = [*arguments, written(folder, given, "c.json")]
    assert run([*arguments, "--patience", "0", *mode]) == 1
    clean(*capsys.readouterr())


@pytest.mark.parametrize("command", [["transform", "--type", "extract-new-state", "--option", f"my.password={CANARY}"]])
@pytest.mark.parametrize("mode", MODES, ids=("people", "json", "debug"))
def test_transform(command: list[str], mode: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, *mode]) == 2
    out, err = capsys.readouterr()
    assert "my.password" in out + err
    clean(out, err)


# -- libraries and servers ------------------------------------------------------------------------------------


def registered(**given: str) -> Configuration:
    return load({**CONNECTOR, "value.converter": "AvroConverter", **given}, WORKER, {"TOKEN": f"{CANARY}\n"})


def test_a_registry_that_repeats_the_login(capsys: pytest.CaptureFixture[str]) -> None:
    registry = Registry()
    with served(registry) as url:
        found = registered(**{URL: url.replace("http://", f"http://u:{CANARY}@")})
        registry.answers += [(401, {"error_code": 401, "message": f"u:{CANARY} and {registry.requests} are wrong"})]
        with pytest.raises(CdcError) as caught:
            SchemaRegistry.of(found.connector.output.value_converter).subjects()
    for output in (ConsoleOutput(), JsonOutput()):
        output.error(str(caught.value))
        output.problems([Problem("x", str(caught.value), value=str(caught.value))])
        output.table(["a"], [[str(caught.value)]])
    out, err = capsys.readouterr()
    assert "the login was refused" in out and "the login was refused" in err
    clean(out, err)


def test_a_token_may_end_with_a_line_break() -> None:
    registry = Registry()
    with served(registry) as url:
        found = registered(**{URL: url, "value.converter.bearer.auth.token": "${env:TOKEN}"})
        SchemaRegistry.of(found.connector.output.value_converter).subjects()
    assert registry.requests == [("GET", "/api/subjects", f"Bearer {CANARY}")]


@pytest.mark.parametrize("log_format", ["human", "json"])
@pytest.mark.parametrize("debug", [True, False])
def test_logs_of_libraries(log_format: str, debug: bool) -> None:
    stream = io.StringIO()
    Secret(CANARY)
    set_up_logging(log_format, debug=debug, stream=stream)
    try:
        raise ValueError(f"Invalid header value {f'Bearer {CANARY}'.encode()!r}")
    except ValueError:
        logging.getLogger("cassandra.cluster").exception("login u:%s", CANARY)
        logging.getLogger("urllib3").error("%s", {"Authorization": CANARY}, extra={"seen": [CANARY, {"x": CANARY}]})
        logging.getLogger("connector.kafka").warning("sasl.password=%s", CANARY, exc_info=True)
    logging.getLogger("py.warnings").warning("%s is deprecated", CANARY)
    assert stream.getvalue().count(secrets.MASK) >= 4
    clean(stream.getvalue())


# -- real processes -------------------------------------------------------------------------------------------

LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "${env:JAAS}"}
ENVIRON = {"JAAS": JAAS.format(CANARY), "BROKER": f"{CANARY}.invalid:9092", "USER_NAME": f"user-{CANARY}"}
ENVIRON |= {"PASSWORD": CANARY}


@pytest.fixture
def files(folder: Path) -> tuple[str, str]:
    connector = {
        **CONNECTOR,
        **{"scylla.cluster.ip.addresses": "127.0.0.1:1", "scylla.user": "${env:USER_NAME}"},
        **{"scylla.password": "${env:PASSWORD}", "value.converter": "AvroConverter"},
        **{URL: f"http://u:{CANARY}@127.0.0.1:1/?token={CANARY}"},
    }
    worker = {**WORKER, **LOGIN, "bootstrap.servers": "${env:BROKER}", "debug": "all"}
    return written(folder, connector, "c.json"), written(folder, worker, "w.json")


class Process:
    """One of ours, what it printed so far, and every command line that was seen of it and its children."""

    def __init__(self, *command: str, stdin: bytes = b"") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ENVIRON},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(stdin)
        self.process.stdin.flush()
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line.decode()

    def ended(self) -> int:
        status = self.process.wait(180 * patience())
        self._reader.join(60 * patience())
        return status

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(60 * patience())
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for each in started:
        each.close()


def command_lines() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue  # it has just ended
    return "\n".join(found)


def test_processes_that_find_nobody(files: tuple[str, str], processes: list[Process]) -> None:
    connector, worker = files
    both = [connector, "--worker", worker, "--debug"]
    running = Process("connector", "run", *both, "--http-port", "0")
    processes.append(running)
    assert until(lambda: "waiting for servers" in running.said and "on http://127.0.0.1:" in running.said)
    port = int(running.said.partition("on http://127.0.0.1:")[2].split()[0])
    commands = (
        ["validate", *both],
        ["validate", *both, "--json"],
        ["status", *both],
        ["status", *both, "--json"],
        ["offsets", "show", *both],
        ["offsets", "show", *both, "--json"],
    )
    others = [Process("connector", *command) for command in commands]
    processes += others
    clean(command_lines())
    for page in ("status", "health", "metrics"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60 * patience()) as answer:
                clean(answer.read().decode())
        except urllib.error.HTTPError as error:
            clean(error.read().decode())
    assert running.stop() == 0
    clean(running.said)
    for each in others:
        assert each.ended() in (1, 2), each.said
        assert "error" in each.said
        clean(each.said)


def test_a_worker_process(files: tuple[str, str], processes: list[Process]) -> None:
    configuration = load(*files, ENVIRON)
    order = WorkerOrder(configuration, 0, "human", debug=True)
    worker = Process("connector.cli.start_worker", stdin=pickle.dumps(order))
    processes.append(worker)
    assert until(lambda: '"event":"waiting"' in worker.said)
    clean(command_lines())
    worker.stop()
    clean(worker.said)
