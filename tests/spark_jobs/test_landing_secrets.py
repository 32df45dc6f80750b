"""What is secret among Spark's settings reaches the JVM, and is in no command line and in nothing that it logs."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from connector.errors import LandingError
from spark_jobs.decode.avro_records import Registry
from spark_jobs.jvm import archive_path, cache_dir, find_java, resolve, with_class_path
from tests.registry.registry_server import Registry as RegistryServer
from tests.registry.registry_server import served
from tests.servers.patience import patience

CANARY = "k4n4ry-Zx9"

# In a process of its own: settings of a JVM's start count for the first session only.
PROGRAM = """
import json, logging, os, pathlib, sys
from connector.cli.land import with_jars
from spark_jobs.config import load_settings
from spark_jobs.session import start_session

logging.basicConfig(level=logging.INFO)
session = start_session(with_jars(load_settings(sys.argv[1])).session_config())
conf = session.sparkContext.getConf()
lines = []
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        lines.append(path.read_bytes().decode(errors="replace"))
    except OSError:
        continue
session._jvm.org.slf4j.LoggerFactory.getLogger("some.library").error("the key is " + os.environ["KEY"])
private = [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("scylla-cdc-")]
print(json.dumps({
    "hadoop": session._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
    "option": session._jvm.System.getProperty("trust.password"),
    "memory": conf.get("spark.driver.memory"),
    "jvms": sum("-Xmx613m" in line and line.split(chr(0))[0].endswith("java") for line in lines),
    "told": [line for line in lines if os.environ["KEY"][:10] in line],
    "left": private,
}))
session.stop()
"""


def test_a_login_in_the_address_of_a_registry_works_and_is_not_shown() -> None:
    registry = RegistryServer()
    registry.schemas.append('{"type": "string"}')
    with served(registry) as url:
        asked = Registry([url.replace("http://", f"http://user:{CANARY}%2F1@")], {})
        assert asked.schema(1) is not None
        registry.refused["ids/2"] = (500, {})
        with pytest.raises(LandingError) as caught:
            asked.schema(2)
    assert CANARY not in str(caught.value)
    login = base64.b64encode(f"user:{CANARY}/1".encode()).decode()
    assert {request[2] for request in registry.requests} == {f"Basic {login}"}


@pytest.fixture
def useless_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Spark's classes: the job starts all the same, and says that it does without."""
    resolve("spark")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "jars").symlink_to(cache_dir() / "jars")
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(cache))
    with monkeypatch.context() as patch:
        for name, value in find_java().spark_environment().items():
            patch.setenv(name, value)
        jars = ",".join(map(str, resolve("spark")))
        path = archive_path(with_class_path({"spark.master": "local[1]", "spark.jars": jars}))
    assert path is not None
    path.parent.mkdir()
    path.write_bytes(b"not an archive")


@pytest.mark.usefixtures("useless_archive")
def test_secrets_of_spark_are_in_no_command_line(tmp_path: Path) -> None:
    config = {
        "name": "job",
        "bootstrap.servers": "127.0.0.1:1",
        "topic.prefix": "p",
        "tables": "ks.t",
        "warehouse": str(tmp_path / "lake"),
        "log.level": "ERROR",
        "spark.master": "local[1]",
        "spark.driver.memory": "${env:MEMORY}",
        "spark.hadoop.fs.s3a.secret.key": "${env:KEY}",
        "spark.hadoop.fs.s3a.endpoint": f"http://user:{CANARY}-url@127.0.0.1:1",
        "spark.driver.extraJavaOptions": f'-Dtrust.password={CANARY}-option -Dother="a b"',
    }
    file = tmp_path / "landing.json"
    file.write_text(json.dumps(config))
    environ = {**os.environ, "KEY": f"{CANARY}-key ä\\", "MEMORY": "613m", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, str(file)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300 * patience())
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("hadoop") == environ["KEY"]
    assert seen.pop("option") == f"{CANARY}-option"
    assert seen == {"memory": "613m", "jvms": 1, "told": [], "left": []}
    assert "the key is ${env:KEY}" in done.stderr
    assert "does not take the archive of its classes" in done.stderr
    assert CANARY not in done.stderr
