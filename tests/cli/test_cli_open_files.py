"""A shell's or a container's first limit of open files is not ours, as it was none of the Java connector's."""

from __future__ import annotations

import subprocess
import sys

from tests.house import ROOT

# A command that only looks how many files it may open, and what those may that it starts.
PROGRAM = """
import resource, subprocess, sys
from connector.cli import main, start
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300))
def look():
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    child = "import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    print(*own, flush=True)
    subprocess.run([sys.executable, "-S", "-c", child], check=True)
main.main = look
start.main()
"""


def test_a_command_and_its_workers_may_open_as_many_files_as_the_system_lets_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["300 300"] * 2
