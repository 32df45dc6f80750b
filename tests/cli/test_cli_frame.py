"""The command line as a user meets it: help, versions, errors and exit statuses, for people and for machines."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from connector import __version__
from connector.cli import main
from connector.cli.command import Parser, likely
from connector.cli.output import ConsoleOutput, JsonOutput, Output
from connector.errors import CdcError, ConfigurationError, DeliveryError, Problem, UsageError
from tests.house import ROOT
from tests.servers.patience import patience

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def scylla_cdc() -> Run:
    def run(*arguments: str, module: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
        entry = [sys.executable, "-m", "connector"] if module else [str(Path(sys.executable).with_name("scylla-cdc"))]
        return subprocess.run(
            [*entry, *arguments],
            cwd=ROOT,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=180 * patience(),
        )

    return run


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_whoever_closes_our_outputs_hears_nothing(tmp_path: Path, closed: str) -> None:
    (tmp_path / "c.json").write_text("[")
    for status, arguments in ((0, ["--version"]), (2, ["validate", "--offline", str(tmp_path / "c.json")])):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "connector", *arguments]
        done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, timeout=180 * patience())
        assert done.returncode == status
        assert "Traceback" not in done.stderr and "unexpected" not in done.stdout + done.stderr


@pytest.mark.parametrize("module", [False, True])
def test_version(scylla_cdc: Run, module: bool) -> None:
    done = scylla_cdc("--version", module=module)
    assert (done.returncode, done.stdout) == (0, f"scylla-cdc {__version__}\n")


def test_help_lists_the_commands_there_are(scylla_cdc: Run) -> None:
    done = scylla_cdc("--help")
    assert done.returncode == 0
    for name in main.COMMANDS:
        assert f"\n    {name} " in done.stdout


def test_commands_load_and_are_called_what_they_are_called() -> None:
    for name, text in main.COMMANDS.items():
        command = main._load(name)
        assert command.name == name
        command.add_arguments(Parser(prog=name))
        assert text


def test_help_does_not_import_what_only_commands_need() -> None:
    program = """
import sys
from connector.cli import main
main._parser(["--help"])
print([name for name in ("cassandra", "confluent_kafka", "pydantic", "pyspark", "rich") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_without_a_command_help_and_status_2(scylla_cdc: Run) -> None:
    done = scylla_cdc()
    assert done.returncode == 2
    assert "COMMAND" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dmeo"], "did you mean demo?"),
        (["embedded", "kafak"], "did you mean kafka?"),
        (["embedded", "kafka", "--prot", "1"], "did you mean --port?"),
        (["--jsno", "demo"], "did you mean --json?"),
        (["demo", "--ro", "1"], "--ro: unknown option (did you mean --rows?)"),
        (
            ["snapshot", "stop", "c.json", "--where=a"],
            "--where: no option of this command (one of scylla-cdc snapshot start)",
        ),
        (["demo", "--rows", "many"], "many is not a number"),
        (["demo", "--log-format", "xml"], "one of human, json"),
        (["embedded", "scylla", "--without", "NOPE"], "--without = 'NOPE': unknown (one of CLIENT_OPTIONS, "),
        (["embedded"], "required: WHAT"),
        (["embedded", "kafka", "--port", "70000"], "70000 is not a port number"),
        (["demo", "more", "words"], "words: unexpected argument"),
    ],
)
def test_wrong_use(scylla_cdc: Run, arguments: list[str], said: str) -> None:
    done = scylla_cdc(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_use_for_machines(scylla_cdc: Run) -> None:
    done = scylla_cdc("demo", "--rosw", "1", "--json")
    assert (done.returncode, done.stderr) == (2, "")
    answer = json.loads(done.stdout)
    assert answer["valid"] is False
    assert answer["problems"][0] == {
        "file": "command line",
        "property": "--rosw",
        "value": None,
        "problem": "unknown option",
        "suggestion": "did you mean --rows?",
    }


def test_why_it_ends_is_a_log_line_like_others_where_these_are_collected(scylla_cdc: Run, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"name": "c", "config": {"tasks.max": "no"}}')
    done = scylla_cdc("run", "--log-format", "json", str(tmp_path / "c.json"))
    assert (done.returncode, done.stdout) == (2, "")
    said = [json.loads(line) for line in done.stderr.splitlines()]
    errors = [line["message"] for line in said if line["level"] == "error"]
    assert len(errors) > 1 and any("tasks.max = 'no'" in each for each in errors)


class Failing:
    """A command that does what the test wants."""

    name = "demo"
    help = "fails"

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        pass

    def run(self, args: argparse.Namespace, output: Output) -> int:
        raise self.error


PROBLEMS = ConfigurationError([Problem("a", "is wrong", value="1"), Problem("b", "is missing", suggestion="add it")])


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (PROBLEMS, 2, ["2 problems", "a = '1': is wrong", "b: is missing (add it)"]),
        (DeliveryError("Kafka is away"), 1, ["error: Kafka is away"]),
        (PermissionError(13, "Permission denied", "data"), 1, ["error: Permission denied: data"]),
        (RuntimeError("can't start new thread"), 1, ["error: no thread can be started", "ulimit"]),
        (MemoryError(), 1, ["error: there is not enough memory", "ulimit"]),
        (
            ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql"),
            2,
            ["demo: needs pyspark.sql, which is not installed", "pip install 'scylla-cdc[spark]'"],
        ),
        (
            ModuleNotFoundError("No module named 'x'", name="x"),
            1,
            ["unexpected ModuleNotFoundError: No module named 'x'"],
        ),
        (KeyError("x"), 1, ["unexpected KeyError: 'x'", "--debug"]),
        (KeyboardInterrupt(), 130, []),
    ],
)
def test_errors_become_statuses(
    error: BaseException,
    status: int,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(main, "_load", lambda name: Failing(error))
    assert main.run(["demo"]) == status
    printed = capsys.readouterr()
    assert printed.out == "" and "Traceback" not in printed.err
    assert all(text in printed.err for text in said)

    assert main.run(["demo", "--debug"]) == status
    assert ("Traceback" in capsys.readouterr().err) == (status != 130)

    assert main.run(["--json", "demo"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == (0 if status == 130 else 1)
    assert all(json.loads(line) for line in lines)


@pytest.mark.parametrize(
    ("table", "words"),
    [("orders", "it must be keyspace.table"), ("shop.orders_scylla_cdc_log", "name the table")],
)
def test_what_is_no_table_is_wrong_use(scylla_cdc: Run, table: str, words: str) -> None:
    done = scylla_cdc("read", table)
    assert done.returncode == 2
    assert f"table = {table!r}" in done.stderr and words in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(scylla_cdc: Run) -> None:
    program = f"set -o pipefail; {sys.executable} -m connector --help | head -c 1"
    done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""


def test_sigterm_unwinds(tmp_path: Path) -> None:
    program = """
import signal, sys
from connector.cli import main
class Waiting:
    name = help = "demo"
    def add_arguments(self, parser): pass
    def run(self, args, output):
        try:
            output.say("up")
            signal.pause()
        finally:
            output.say("cleaned up")
main._load = lambda name: Waiting()
main.main(["demo"])
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "cleaned up\n"
        assert process.wait(90 * patience()) == 128 + signal.SIGTERM


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_and_never_against_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for stream, coloured in ((Terminal(), True), (io.StringIO(), False)):
        ConsoleOutput(stream, stream).error("no")
        assert ("\x1b" in stream.getvalue()) is coloured
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    ConsoleOutput(stream, stream).error("no")
    assert stream.getvalue() == "error: no\n"


def test_one_output_for_people_and_machines() -> None:
    console, machine = io.StringIO(), io.StringIO()
    for output in (ConsoleOutput(console, console), JsonOutput(machine, machine)):
        output.say("working")
        output.table(["table", "lag"], [["ks.t", 5], ["ks.long_name", None]])
        output.record({"time": 1})
        output.result({"differences": 0}, "0 differences")
    assert console.getvalue().splitlines() == [
        "working",
        "table         lag",
        "ks.t          5",
        "ks.long_name",
        '{"time": 1}',
        "0 differences",
    ]
    assert [json.loads(line) for line in machine.getvalue().splitlines()] == [
        [{"table": "ks.t", "lag": 5}, {"table": "ks.long_name", "lag": None}],
        {"time": 1},
        {"differences": 0},
    ]


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        with ConsoleOutput(io.StringIO(), stream).progress("reading") as progress:
            progress.update(3, 10)
        assert ("reading: 3 of 10" in stream.getvalue()) is shown


def test_suggestions() -> None:
    assert likely("valdate", ["validate", "verify"]) == "did you mean validate?"
    assert likely("val", ["validate", "verify"]) == "did you mean validate?"
    assert likely("zzz", ["validate", "verify"]) is None


def test_options_are_not_abbreviated() -> None:
    parser = Parser(prog="x")
    parser.add_argument("--timeout")
    with pytest.raises(UsageError, match="did you mean --timeout"):
        parser.parse(["--time", "1"])


class Full(io.StringIO):
    """A file on a disk that has no room."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("form", [ConsoleOutput, JsonOutput])
def test_a_full_disk_takes_results_and_says_so_but_words_never_stop_the_work(form: type[Output]) -> None:
    aside = io.StringIO()
    output = form(Full(), aside)
    output.say("reading …")
    for result in (lambda: output.result({"a": 1}, "a 1"), lambda: output.record({"a": 1})):
        with pytest.raises(CdcError, match="what is printed cannot be written: No space left on device"):
            result()
    output.error("why")
    output.problems([Problem("file", "There is no such file")])
    form(Full(), Full()).note("there is no worker file")
    assert aside.getvalue().startswith("error: why\nerror: 1 problem\n")
    form(Full(), Full()).error("why")
    form(Full(), Full()).problems([Problem("file", "There is no such file")])


@pytest.mark.parametrize("name", ["connector.json", "nowhere.json"])
def test_a_result_that_goes_nowhere_is_an_error_of_one_line(name: str) -> None:
    """The words about it went where the result could not, and a traceback was what was left."""
    command = [sys.executable, "-m", "connector", "validate", "--offline", "--json", f"config/{name}"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=120)
    assert done.returncode in (1, 2)
    assert "error: " in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("form", [ConsoleOutput, JsonOutput])
def test_what_a_terminal_has_no_letters_for_is_escaped(form: type[Output]) -> None:
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    form(shown).result({"name": 'größe "😀"'}, "größe 😀")
    text = shown.buffer.getvalue().decode()  # type: ignore[attr-defined]
    if form is ConsoleOutput:
        assert text == "gr\\u00f6\\u00dfe \\ud83d\\ude00\n"
    else:
        assert json.loads(text) == {"name": 'größe "😀"'}
