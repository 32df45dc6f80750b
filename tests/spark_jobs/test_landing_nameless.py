"""A user that is a number only, as containers are run: Spark starts, and what needs a home says so."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from connector.errors import ConfigurationError
from spark_jobs.jvm import cache, cache_dir, with_home

# In a space of its own, whose user is what it is called there: files stay within reach.
_AS_A_NUMBER = ("unshare", "--user", "--map-user=54321", "--map-group=54321")
_STARTS_SPARK = """
import os, pwd

def nobody(_):
    raise KeyError

# Where the system makes no such spaces, this process alone takes its user for a number.
pwd.getpwuid, os.getuid = nobody, lambda: 54321

from spark_jobs.session import start_session

session = start_session({"spark.master": "local[1]", "spark.sql.warehouse.dir": "file:///tmp"})
home = session._jvm.System.getProperty("user.home")
print(home, session.sparkContext.sparkUser(), session.range(3).count())
"""


@pytest.mark.spark
def test_spark_starts_without_a_name_and_a_home() -> None:
    """Java's home was `?`, and Hadoop's login a `NullPointerException`."""
    try:
        within = _AS_A_NUMBER if subprocess.run([*_AS_A_NUMBER, "true"], capture_output=True).returncode == 0 else ()
    except FileNotFoundError:
        within = ()
    names = {"HOME", "USER", "LOGNAME", "HADOOP_USER_NAME", "SPARK_USER"}
    environment = {name: value for name, value in os.environ.items() if name not in names} | {"TMPDIR": "/tmp"}
    command = [*within, sys.executable, "-c", _STARTS_SPARK]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.stdout.split() == ["/tmp", "54321", "3"], done.stderr


def test_who_has_a_name_has_a_home_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    with with_home():
        assert os.environ["SPARK_SUBMIT_OPTS"] == "-Da=b"


def test_a_home_that_cannot_be_written_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    for home, wanted in ((str(tmp_path), str(tmp_path)), ("/nowhere", "/tmp")):
        monkeypatch.setenv("HOME", home)
        monkeypatch.setattr("tempfile.tempdir", "/tmp")
        with with_home():
            assert os.environ["SPARK_SUBMIT_OPTS"] == f"-Duser.home={wanted} -Da=b"
        assert os.environ["SPARK_SUBMIT_OPTS"] == "-Da=b"


def test_no_home_for_what_is_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    monkeypatch.setattr(cache, "__file__", "/nowhere/spark_jobs/jvm/cache.py")
    for name in ("HOME", "XDG_CACHE_HOME", "SCYLLA_CDC_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="set SCYLLA_CDC_CACHE, or HOME"):
        cache_dir()
    monkeypatch.setenv("HOME", "/lake")
    assert cache_dir() == Path("/lake/.cache/scylla-cdc")


def _nobody(_: int) -> pwd.struct_passwd:
    raise KeyError
