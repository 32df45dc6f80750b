"""The recordings of a real ScyllaDB, replayed on the double: no difference but the named deviations.

All at once, on one server of their own: most of a replay is waiting for timestamps and for columns to be added again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded.scylla.process import EmbeddedScylla
from embedded.scylla.recordings.comparison import Comparison
from embedded.scylla.recordings.deviations import DEVIATIONS
from embedded.scylla.recordings.files import read_recording
from embedded.scylla.recordings.replay import replay
from embedded.scylla.recordings.server import Address, Server
from tests.house import ROOT

FILES = sorted(path for path in (ROOT / "tests/recordings").rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def replays() -> Iterator[dict[Path, Future[Comparison]]]:
    with EmbeddedScylla(ring_delay=0, shards=2) as scylla, ThreadPoolExecutor(len(FILES)) as pool:

        def replayed(path: Path) -> Comparison:
            with Server(Address(scylla.host, scylla.port)) as server:
                return replay(server, read_recording(path))

        yield {path: pool.submit(replayed, path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_the_double_does_what_scylladb_did(replays: dict[Path, Future[Comparison]], path: Path) -> None:
    found = replays[path].result()
    assert found.compared["answers"] >= 89
    if path.name.startswith(("vnodes", "tablets")):
        assert found.compared["statements"] > 1500 and found.compared["log rows"] > 2500
        assert found.deviations == []
    assert [each.text() for each in found.differences] == []


def test_the_page_lists_the_deviations_with_their_reasons() -> None:
    page = (ROOT / "docs/embedded.md").read_text()
    section = page.split("<!-- deviations -->")[1].split("\n## ")[0]
    listed = re.findall(r"^- \*(.+?)\*: (.+?)(?=\n- |\n\n|\Z)", section, re.MULTILINE | re.DOTALL)
    assert [(name, " ".join(reason.split())) for name, reason in listed] == [
        (each.name, each.reason) for each in DEVIATIONS
    ]


def test_every_deviation_is_still_one(replays: dict[Path, Future[Comparison]]) -> None:
    met = {name for future in replays.values() for name, _ in future.result().deviations}
    assert met == {each.name for each in DEVIATIONS}
