"""Leases on file systems that do less in one step, holders that pause, and processes that cannot be seen."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.config import load_settings
from spark_jobs.tables import lease as leases
from spark_jobs.tables.lease import Lease, LocalFolder, holds
from tests.servers.patience import until


class Failing(LocalFolder):
    """Files that cannot be written or read, as long as it is said so."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.broken = False
        self.empty_reads = 0

    def write(self, name: str, text: str) -> None:
        if self.broken:
            raise RuntimeError("an error of the Java side")
        super().write(name, text)

    def read(self, name: str) -> str:
        if self.empty_reads:
            self.empty_reads -= 1
            return ""
        return super().read(name)


def holder(**more: Any) -> str:
    found = {"what": "land", "host": os.uname().nodename, "machine": leases._machine(), "pid": os.getpid()}
    started = leases._started(os.getpid())
    return json.dumps({**found, "started": started, "expires_ms": 2**62, "tables": [], **more})


def test_a_file_that_is_being_written_is_no_dead_holders(tmp_path: Path) -> None:
    folder = Failing(str(tmp_path))
    assert folder.create("job.1", holder())
    folder.empty_reads = 2
    with pytest.raises(LandingError, match="written by another job"):
        Lease(folder, "job", 60_000).acquire()
    assert folder.names() == ["job.1"]


def test_where_only_one_process_may_write_nothing_writes_beside_another(tmp_path: Path) -> None:
    """Of two processes with Delta's log store for one, one commit overwrote the other, and what it told was lost."""
    file = {
        "name": "job",
        "bootstrap.servers": "127.0.0.1:1",
        "topic.prefix": "p",
        "tables": ["ks.t"],
        "warehouse": "s3a://lake",
        "lease.folder": str(tmp_path),
    }
    several = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
    one = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
    # A folder of this machine needs no session.
    session: Any = None
    with leases.job_lease(session, settings := load_settings({**file, **one})):
        with pytest.raises(LandingError, match="written by another job: land"), leases.upkeep_lease(session, settings):
            pass
        with pytest.raises(LandingError, match="Stop land until backfill has ended"):
            leases.filling_lease(session, settings)
        with leases.upkeep_lease(session, others := load_settings({**file, **several})):
            leases.filling_lease(session, others)
    with leases.upkeep_lease(session, settings), pytest.raises(LandingError, match="by another job: maintain"):
        leases.job_lease(session, settings).acquire()


def test_what_never_can_be_read_holds_nothing(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    assert folder.create("job.1", "not ours")
    with Lease(folder, "job", 60_000):
        assert folder.names() == ["job.2"]


@pytest.mark.parametrize(
    ("more", "free"),
    [({"pid": 2**22 + 1}, True), ({"pid": 2**22 + 1, "machine": "a pod"}, False), ({"started": "a later one"}, True)],
)
def test_only_who_can_see_a_process_knows_that_it_is_gone(tmp_path: Path, more: dict[str, Any], free: bool) -> None:
    folder = LocalFolder(str(tmp_path))
    assert folder.create("job.1", holder(**more))
    assert (holds(folder, "job") is None) is free


def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = LocalFolder(str(tmp_path)), LocalFolder(str(tmp_path))
    # It has looked before the other's file was there.
    monkeypatch.setattr(other, "names", list)
    with Lease(folder, "job", 60_000) as lease:
        with pytest.raises(LandingError, match="written by another job"):
            Lease(other, "job", 60_000).acquire()
        lease.check()


def test_errors_of_every_kind_are_survived_and_known(tmp_path: Path) -> None:
    folder = Failing(str(tmp_path))
    with Lease(folder, "job", 300) as lease:
        folder.broken = True

        def silent() -> bool:
            try:
                lease.check()
            except LandingError as error:
                return "was not renewed for" in str(error)
            return False

        until(silent, 60, "a lease that cannot be renewed")
        folder.broken = False
        until(lambda: not silent(), 60, "a lease that is renewed again")
        assert not lease.lost, "nobody else took it over"


class InTwoSteps(LocalFolder):
    """A file is replaced by taking it away first; the second step comes when it is let."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.taken_away, self.let = threading.Event(), threading.Event()

    def write(self, name: str, text: str) -> None:
        self.remove(name)
        self.taken_away.set()
        self.let.wait(60)
        super().write(name, text)


def test_a_file_that_we_are_replacing_is_not_taken_over(tmp_path: Path) -> None:
    folder = InTwoSteps(str(tmp_path))
    with Lease(folder, "job", 3_000) as lease, ThreadPoolExecutor(1) as other:
        assert folder.taken_away.wait(60)
        lease._timeout_ms = 60_000  # it shall renew soon, and need not again
        looked = other.submit(lease.check)
        # Who looks in between has seen it by then.
        wait([looked], 0.3)
        folder.let.set()
        looked.result(60)


def test_who_was_taken_over_ends_and_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    lease = Lease(folder, "job", 300)
    with lease:
        assert folder.create("job.2", holder())
        folder.remove("job.1")
        until(lambda: lease.lost, 60, "the renewal that finds it")
        until(lambda: not any(thread.name == "lease" for thread in threading.enumerate()), 60, "the end of renewing")
        with pytest.raises(LandingError, match="another process took over"):
            lease.check()
        assert folder.names() == ["job.2"]


def test_a_later_job_with_the_same_number_is_another_holder(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    paused = Lease(folder, "job", 60_000)
    with paused:
        folder.remove("job.1")
        with Lease(folder, "job", 60_000) as later:
            with pytest.raises(LandingError, match="another process took over"):
                paused.check()
            paused.release()
            later.check()
            assert folder.names() == ["job.1"]


@pytest.mark.spark
@pytest.mark.parametrize("renames", [True, False])
def test_a_folder_of_hadoop_creates_a_file_once_and_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: bool
) -> None:
    monkeypatch.setattr(leases, "RENAMES", ("file",) if renames else ())
    folder = leases.HadoopFolder(spark, f"file://{tmp_path}/leases")
    assert folder.create("job.1", "first") and not folder.create("job.1", "second")
    assert folder.read("job.1") == "first"
    folder.write("job.1", "renewed")
    assert folder.read("job.1") == "renewed" and [name for name in folder.names() if "job" in name] == ["job.1"]
    with Lease(folder, "other", 60_000), pytest.raises(LandingError, match="written by another job"):
        Lease(folder, "other", 60_000).acquire()
    folder.remove("job.1")
    assert folder.names() == []


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """A full disk, say: a lease is renewed again and again."""
    folder = LocalFolder(str(tmp_path))
    assert folder.create("job.1", "held")
    for attempt in (folder.create, folder.write):
        with pytest.raises(UnicodeEncodeError):
            attempt("job.1", "\ud800")
    assert folder.names() == ["job.1"] and folder.read("job.1") == "held"
    folder.write("job.1", "renewed")
    assert not folder.create("job.1", "mine") and folder.names() == ["job.1"]
