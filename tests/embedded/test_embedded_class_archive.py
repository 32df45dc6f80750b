"""The class archive makes a broker start sooner, and a useless one does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded import ports
from embedded.class_archive import archive_path
from embedded.kafka import EmbeddedKafka, broker_classpath
from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.java import find_java

pytestmark = pytest.mark.kafka


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has the jars and nothing else."""
    jars = cache_dir() / "jars"
    broker_classpath()
    (tmp_path / "jars").symlink_to(jars)
    monkeypatch.setenv("SCYLLA_CDC_CACHE", str(tmp_path))
    return tmp_path


def test_the_broker_runs_from_the_archive_that_set_up_wrote(kafka: EmbeddedKafka) -> None:
    written = archive_path(find_java(), broker_classpath()).resolve()
    assert str(written) in Path(f"/proc/{kafka.pid}/maps").read_text()


def test_a_useless_archive_is_passed_over(fresh_cache: Path) -> None:
    path = archive_path(find_java(), broker_classpath())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not an archive")
    with EmbeddedKafka() as broker:
        assert not ports.is_free(broker.port)
