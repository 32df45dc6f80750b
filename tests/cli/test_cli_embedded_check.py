"""`scylla-cdc embedded check` against a double that is started as anybody's: what it prints, writes and leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.errors import EmbeddedError
from tests.embedded.scylla.certificates import certificate
from tests.house import ROOT
from tests.servers import keyspaces
from tests.servers.double import Double
from tests.servers.patience import patience, until

pytestmark = [pytest.mark.scylla, pytest.mark.only_double("the check itself")]
FEW = "test_scylla_cdc_cases and (01_insert_plain or test_conditional_writes or test_old_writes)"
CERTAIN_SECONDS = 240


@pytest.fixture(scope="module")
def foreign() -> Iterator[Double]:
    """Two shards, and stream sets that count from 9 s later on, as on a server that is not made for tests."""
    with Double(shards=2, ring_delay=2) as scylla:
        yield scylla


def check(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "connector", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=CERTAIN_SECONDS * patience(),
    )


def names(scylla: Double) -> set[str]:
    rows = scylla.admin.cql("SELECT keyspace_name FROM system_schema.keyspaces")["rows"]
    return {name for (name,) in rows}


def test_what_holds_is_a_page_and_nothing_stays(foreign: Double, tmp_path: Path) -> None:
    foreign.admin.cql(foreign.keyspace_ddl("scylla_cdc_check_mine", tablets=False))
    before = names(foreign)
    done = check("embedded", "check", foreign.address, "--only", "semantics", "-k", FEW, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "real-2026.1.0.md\n"), done.stderr[-3000:]
    page = (tmp_path / "real-2026.1.0.md").read_text()
    assert page.startswith("# scylla-cdc on ScyllaDB 2026.1.0\n")
    assert "1 node in datacenter1 (shards per node: 2; tokens per node: 16)" in page
    assert "All that was looked at held." in page
    # Both kinds of keyspaces: a worked example, conditional writes, writes of long ago.
    assert "| CDC and CQL semantics | 6 | 0 | 0 |" in page
    assert "test_scylla_cdc_tables.py::test_deletes_by_the_system" not in page, "it was not chosen"
    assert "generation: no address of the REST API was given" in page
    assert names(foreign) == before, "what the run made is gone, and nothing else"


def test_what_differs_is_told_with_its_words_for_machines_too(foreign: Double, tmp_path: Path) -> None:
    fault = foreign.admin.add_fault("invalid", pattern="INSERT INTO .*cases_tablets", message="not in this house")
    try:
        words = ("--only", "semantics", "-k", FEW, "--output", str(tmp_path / "other.md"))
        done = check("--json", "embedded", "check", foreign.address, *words, folder=tmp_path)
    finally:
        foreign.admin.remove_fault(fault)
    assert done.returncode == 1, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["held"] is False and found["finished"] is True and found["version"] == "2026.1.0"
    assert {each["name"].rpartition("::")[2] for each in found["differed"]} == {
        "test_worked_example[tablets-01_insert_plain]",
        "test_conditional_writes_are_logged_when_applied[tablets]",
        "test_old_writes_are_judged_by_the_kind_of_keyspace[tablets]",
    }
    page = (tmp_path / "other.md").read_text()
    assert "Not all of it held" in page and "not in this house" in page
    assert not [name for name in names(foreign) if name.startswith(keyspaces.PREFIX) and not name.endswith("_mine")]


def test_wrong_addresses_passwords_and_certificates_are_one_line(tmp_path: Path) -> None:
    file, key = certificate(tmp_path, "server")
    with Double(user="ann", password="right", tls_cert=file, tls_key=key) as scylla:
        tls = ("--tls", str(file))
        for arguments, password, status, words in (
            (("127.0.0.1:1",), "", 1, "127.0.0.1:1 cannot be reached: "),
            (("no place",), "", 2, "'no place' is not HOST:PORT"),
            ((scylla.address, *tls, "--user", "ann"), "wrong", 1, f"{scylla.address} refused the login: "),
            ((scylla.address, *tls, "--user", "ann"), "", 2, "the password of ann is taken from SCYLLA_PASSWORD"),
            ((scylla.address, *tls), "", 1, f"{scylla.address} "),
            ((scylla.address, "--tls", "none.pem"), "", 2, "--tls none.pem: there is no such file"),
            ((scylla.address, "--only", "nothing"), "", 2, "the parts are semantics, reader, "),
        ):
            done = check("embedded", "check", *arguments, folder=tmp_path, SCYLLA_PASSWORD=password)
            assert (done.returncode, done.stdout) == (status, ""), (arguments, done.stderr)
            assert words in done.stderr and "Traceback" not in done.stderr, (arguments, done.stderr)
            assert "wrong" not in done.stderr.replace("wrong password", ""), "no password is printed"
            assert done.stderr.count("\n") == 1, done.stderr
        right = ("--only", "semantics", "-k", "01_insert_plain")
        done = check(
            *("embedded", "check", scylla.address, *tls, "--user", "ann", *right),
            folder=tmp_path,
            SCYLLA_PASSWORD="right",
        )
        assert done.returncode == 0, done.stderr[-3000:]


def test_an_interrupted_run_drops_what_it_made(foreign: Double, tmp_path: Path) -> None:
    before = names(foreign)
    command = [sys.executable, "-m", "connector", "embedded", "check", foreign.address, "--only", "semantics"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        until(lambda: any("cases_" in name for name in names(foreign)), seconds=120)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120 * patience())
        assert process.returncode == 130
    assert names(foreign) == before
    assert "The run was interrupted." in (tmp_path / "real-2026.1.0.md").read_text()


def test_a_file_that_cannot_be_imported_differs_and_the_others_are_run(foreign: Double, tmp_path: Path) -> None:
    # As a folder: a file that is given by itself and is not below the root has no name in pytest's reports.
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "test_broken.py").write_text("import nothing_of_this_name\n")
    report = tmp_path / "outcomes"
    fine = ROOT / "tests/embedded/scylla/test_scylla_cdc_cases.py"
    arguments = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "-k", "old_writes"]
    arguments += [f"--scylla={foreign.address}", f"--scylla-report={report}", str(fine), str(broken)]
    command = [sys.executable, "-m", "pytest", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=CERTAIN_SECONDS * patience())
    assert done.returncode == 1, done.stdout[-3000:]
    found = [json.loads(line) for line in report.read_text().splitlines()]
    (collected,) = [each for each in found if each["outcome"] == "failed"]
    assert collected["nodeid"].endswith("test_broken.py") and "nothing_of_this_name" in collected["reason"]
    assert "passed" in {each["outcome"] for each in found}


def test_a_sweep_takes_what_killed_runs_left_and_nothing_else(foreign: Double, tmp_path: Path) -> None:
    run = keyspaces.new_run()
    cluster = foreign.cluster()
    try:
        session = cluster.connect()
        # Names that look like this tool's, without the mark of a run.
        strangers = {"scylla_cdc_check_00c0ffee_orders", "scylla_cdc_check_orders", "shop", "recording_of_sales"}
        for name in strangers:
            session.execute(foreign.keyspace_ddl(name, tablets=False))
        before = names(foreign)
        keyspaces.begin(session, run)
        session.execute(foreign.keyspace_ddl(f"{keyspaces.prefix_of(run)}ks_1", tablets=True))
        for name in ("recording_0123456789", "recording_0123456789x"):
            session.execute(foreign.keyspace_ddl(name, tablets=False))
        done = check("embedded", "check", foreign.address, "--sweep", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "dropped recording_0123456789x, recording_0123456789" in done.stdout
        assert f"run {run} of 2" in done.stdout and "1 run had left keyspaces behind" in done.stdout
        assert names(foreign) == before
        for name in strangers:
            session.execute(f"DROP KEYSPACE {name}")
    finally:
        cluster.shutdown()


def test_without_the_tests_it_says_where_they_are(tmp_path: Path) -> None:
    """As an installed package has it: no tests beside the code."""
    for room in ("connector", "embedded", "smt"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    done = check("embedded", "check", "127.0.0.1:1", folder=tmp_path, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "the tests are not there: they are part of a clone" in done.stderr
    assert "make real SCYLLA=127.0.0.1:1" in done.stderr
    assert EmbeddedError.__name__ not in done.stderr
