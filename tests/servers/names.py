"""A name service for processes that a test starts: names that resolve or not, while they run.

In: names. Out: the beginning of a command line whose processes look them up in a hosts file of their own,
as they would in DNS: in a mount namespace, so that nobody else's names change. Where the kernel lets a user have none,
`tests/debian_programs.py` leaves these tests out, aloud.
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

#: Files first and nothing else: an outage of a real name service may take a query ten seconds, and not all the same.
_SWITCH = "hosts: files\n"
_MOUNT = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/nsswitch.conf && shift 2 && exec "$@"'


def _namespace() -> list[str]:
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]


@functools.cache
def why_not() -> str | None:
    """Why processes cannot have names of their own here."""
    try:
        done = subprocess.run([*_namespace(), "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()


class Names:
    """Of one test. Every change counts for all processes that were started with `command`."""

    def __init__(self, folder: Path) -> None:
        self._hosts, self._switch = folder / "hosts", folder / "nsswitch.conf"
        self._known: set[str] = set()
        self._switch.write_text(_SWITCH)
        self._write()

    @property
    def command(self) -> list[str]:
        return [*_namespace(), "sh", "-c", _MOUNT, "sh", str(self._hosts), str(self._switch)]

    def know(self, *names: str) -> None:
        """They resolve, to this machine."""
        self._known |= {*names}
        self._write()

    def forget(self, *names: str) -> None:
        self._known -= {*names}
        self._write()

    def _write(self) -> None:
        # In place: another file of the same name would not be the one that is mounted.
        self._hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *sorted(self._known))))
