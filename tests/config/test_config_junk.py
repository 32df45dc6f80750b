"""Whatever stands in the files, the answer is a configuration or a list of problems, never a traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from connector.config import load
from connector.config.kafka.translation import client_names
from connector.config.properties.catalogue import CONNECTOR, WORKER_BY_NAME
from connector.errors import ConfigurationError
from tests.config.files import CONNECTOR as PLAIN
from tests.config.files import WORKER, validate

NAMES = [
    *sorted(CONNECTOR),
    "transforms.a.type",
    "transforms.a.predicate",
    "transforms.",
    "transforms.a",
    "predicates.p.type",
    "predicates.p.pattern",
    "key.converter.schemas.enable",
    "value.converter.schema.registry.url",
    "value.converter.",
    "topic.creation.default.partitions",
    "topic.creation.",
    "topic.creation.x",
    "producer.override.acks",
    "producer.override.",
    "",
    "config",
]
CLIENT_NAMES = sorted(client_names())
WORKER_NAMES = [*sorted(WORKER_BY_NAME), *CLIENT_NAMES, *(f"producer.{name}" for name in CLIENT_NAMES)]
VALUES: list[Any] = [
    "", " ", "a", "a,b", ",", "0", "-1", "1", "1.5", "99999999999999999999", "true", "FALSE", "null", "none", "all",
    "${env:X}", "${", "${:}", "${file:/:x}", "${directory:/etc:passwd}", "(", "[",
    "JsonConverter", "AvroConverter", "RegexRouter",
    "http://", "http://[", "h:1", "[::1", "::", "a.b", "a.b.c", "SASL_SSL", "SSL", "PLAIN", "GSSAPI", "OAUTHBEARER",
    "x required a=b;", "\u0000", "ü", "/dev/null", "/", 0, -1, 1, 2.5, 1e308, True, None, [], ["a"], [{}], {}, {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_junk(seed: int) -> None:
    rng = random.Random(seed)
    connector = dict(PLAIN) if rng.random() < 0.5 else {}
    for name in rng.sample(NAMES, rng.randrange(1, 20)):
        connector[name] = rng.choice(VALUES)
    worker = dict(WORKER)
    for name in rng.sample(WORKER_NAMES, rng.randrange(1, 20)):
        worker[name] = rng.choice(VALUES)
    found = validate(connector, worker, {"X": "x", "CONNECT_": "x", "CONNECT___": "x"})
    for problem in found:
        assert problem.problem and problem.file and str(problem)
    if not found:
        load(connector, worker, {"X": "x"})


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"nul", b"[" * 100_000, b'{"config": null}', b'{"a": NaN}', b'"\\ud800"', b"{}{}"]
)
def test_junk_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load(path, path, {})
    assert all(str(problem.file) == str(path) for problem in caught.value.problems)
    json.dumps([problem.problem for problem in caught.value.problems])


def test_folders_and_missing_files(tmp_path: Path) -> None:
    found = validate(tmp_path, tmp_path / "none.json", {})
    assert [one.property for one in found] == ["file", "file"]
