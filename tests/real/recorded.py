"""Recordings of a real ScyllaDB, replayed on the cluster under test: another version or machine, the same answers.

Not a `test_` file: `make test` replays them on the double, all at once, in the tests of the embedded ScyllaDB. A check
of somebody's cluster names this file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.scylla.recordings.files import Answers, read_recording
from embedded.scylla.recordings.replay import replay
from embedded.scylla.recordings.server import Address, Server, SkippedRecording
from tests.house import ROOT
from tests.servers.foreign import leave_out
from tests.servers.scylla import Scylla

pytestmark = [pytest.mark.scylla, pytest.mark.any_scylla]
FILES = sorted((ROOT / "tests/recordings").glob("*/*.json*"))
_SHOWN, _LONG = 20, 500


def address(scylla: Scylla) -> Address:
    host, port = scylla.points[0]
    return Address(host, port, scylla.login.user, scylla.login.password or "", scylla.login.context())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name.partition('.')[0]}")
def test_it_does_what_scylladb_did(scylla: Scylla, path: Path) -> None:
    recording = read_recording(path)
    scylla.require("tablets" if recording.tablets else "vnodes")
    if isinstance(recording, Answers) and scylla.login.user is not None:
        leave_out("answers: the statements try to create a role, which a login may be allowed to")
    try:
        with Server(address(scylla), prefix=scylla.prefix) as server:
            found = replay(server, recording)
    except SkippedRecording as reason:
        leave_out(str(reason))
    assert found.compared["answers"] >= 89
    told = [each.text()[:_LONG] for each in found.differences[:_SHOWN]]
    assert not told, f"{len(found.differences)} differences, the first:\n" + "\n".join(told)
