"""One appender per job name and per table: a lease in the warehouse, taken by whoever creates its next file first.

In: the warehouse's folder and the job's name. Out: a held ``Lease``, or ``LandingError`` naming the holder. Leases
count up; only one process can create a given number, so two cannot both take over from a dead one. A silent
holder's lease expires; on the same machine, and among the processes that this one can see, a holder whose process is
gone counts as dead at once. Jobs of other names are refused while they write one of the same tables.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from connector.errors import LandingError
from spark_jobs.config import BESIDE, RENAMES
from spark_jobs.java_objects import file_system, file_text, hadoop_path, java_class

if TYPE_CHECKING:
    from spark_jobs.config import Settings

log = logging.getLogger(__name__)

# Of the number of a file.
_MOST_DIGITS = 18
# A file that cannot be read may be one that its holder is just writing: not every file system does that in one step.
_LOOKS, _LOOK_S = 5, 0.2
LAND, BACKFILL = "land", "backfill"
"""What holders say they do."""


class Folder(Protocol):
    """The few file operations a lease needs."""

    def names(self) -> list[str]: ...

    def create(self, name: str, text: str) -> bool:
        """Creates the file unless it exists; False if it does."""

    def read(self, name: str) -> str: ...

    def write(self, name: str, text: str) -> None: ...

    def remove(self, name: str) -> None: ...


class LocalFolder:
    """Hadoop's local file system checks and then creates; the operating system can do both in one."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        return [entry.name for entry in self.path.iterdir()]

    def create(self, name: str, text: str) -> bool:
        """Linking a finished file creates name and content in one step: nobody can see the one without the other."""
        with self._finished(name, text) as fresh:
            try:
                os.link(fresh, self.path / name)
            except FileExistsError:
                return False
        return True

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        with self._finished(name, text) as fresh:
            os.replace(fresh, self.path / name)

    @contextlib.contextmanager
    def _finished(self, name: str, text: str) -> Iterator[Path]:
        """A file of another name. On a full disk nothing is left of it: one is tried with each renewal."""
        fresh = self.path / f".{name}.{uuid.uuid4().hex}"
        try:
            fresh.write_text(text, encoding="utf-8")
            yield fresh
        finally:
            fresh.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).unlink()


class HadoopFolder:
    """A folder on a Hadoop file system: one that renames in one step, as HDFS, or that creates a file at most once, as
    the stores of Google and Azure."""

    def __init__(self, session: SparkSession, path: str) -> None:
        self._session = session
        self._path = path
        root = hadoop_path(session, path)
        self._files = file_system(session, root)
        self._files.mkdirs(root)
        self._context: Any = None
        if str(self._files.getUri().getScheme()) in RENAMES:
            contexts = java_class(session, "org.apache.hadoop.fs.FileContext")
            self._context = contexts.getFileContext(self._files.getUri(), session._jsc.hadoopConfiguration())
            self._options = session.sparkContext._gateway.new_array(self._rename_option, 1)

    def _at(self, name: str) -> Any:
        return hadoop_path(self._session, f"{self._path}/{name}")

    def names(self) -> list[str]:
        return [status.getPath().getName() for status in self._files.listStatus(self._at(""))]

    @property
    def _rename_option(self) -> Any:
        return java_class(self._session, "org.apache.hadoop.fs.Options$Rename")

    def create(self, name: str, text: str) -> bool:
        try:
            if self._context is None:
                self._fill(self._files.create(self._at(name), False), text)
            else:
                self._renamed(name, text, self._rename_option.NONE)
        except Exception:
            if self._files.exists(self._at(name)):
                return False
            raise
        return True

    def read(self, name: str) -> str:
        return file_text(self._session, self._at(name))

    def write(self, name: str, text: str) -> None:
        if self._context is None:
            self._fill(self._files.create(self._at(name), True), text)
        else:
            self._renamed(name, text, self._rename_option.OVERWRITE)

    def remove(self, name: str) -> None:
        self._files.delete(self._at(name), False)

    def _renamed(self, name: str, text: str, how: Any) -> None:
        """Name and content come in one step."""
        fresh = self._at(f".{name}.{uuid.uuid4().hex}")
        self._fill(self._files.create(fresh, True), text)
        try:
            options = self._options
            options[0] = how
            self._context.rename(fresh, self._at(name), options)
        finally:
            self._files.delete(fresh, False)

    def _fill(self, stream: Any, text: str) -> None:
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()


def open_folder(session: SparkSession, path: str) -> Folder:
    """The folder at a path or URL."""
    parts = urlsplit(path)
    if parts.scheme in ("", "file"):
        return LocalFolder(parts.path if parts.scheme else path)
    return HadoopFolder(session, path)


class Lease:
    """Held from ``acquire`` to ``release``; a thread says every third of the timeout that the holder lives."""

    def __init__(
        self, folder: Folder, name: str, timeout_ms: int, what: str = LAND, tables: Collection[str] = ()
    ) -> None:
        self._folder = folder
        self._prefix = f"{name}."
        self._timeout_ms = timeout_ms
        self._what = what
        self._tables = sorted(tables)
        self._number = 0
        # Numbers begin again where nobody held anything: a file of the same number may be a later job's.
        self._token = uuid.uuid4().hex
        #: Another process has taken it over: this one must end.
        self.lost = False
        self._renewed = 0.0
        # Where a file is replaced in two steps there is none in between: to whoever looks then, ours would be gone.
        self._replacing = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self) -> None:
        numbers = self._numbers()
        newest = numbers[-1] if numbers else 0
        if newest:
            self._refuse_if_held(newest)
        self._number = newest + 1
        if not self._folder.create(self._file(self._number), self._text()):
            self._refuse_if_held(self._number, certain=True)
        for number in numbers:
            self._folder.remove(self._file(number))
        try:
            # Only now: of two that start at once, each sees the other's file.
            self._refuse_if_shared()
        except LandingError:
            self._folder.remove(self._file(self._number))
            raise
        self._renewed = time.monotonic()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        if self._thread is None:
            return
        self._stop.set()
        self._thread.join()
        self._thread = None
        if not self._is_anothers():
            self._folder.remove(self._file(self._number))

    def check(self) -> None:
        """Raises if somebody took the lease over, as after a long pause of this process."""
        with self._replacing:
            self._look()
        if self.lost:
            raise LandingError("another process took over the lease of this job; this one stops")
        if (silent := time.monotonic() - self._renewed) > self._timeout_ms / 1000:
            raise LandingError(f"the lease of this job was not renewed for {silent:.0f} s: others may take it over")

    def _look(self) -> None:
        numbers = self._numbers()
        self.lost = self.lost or not numbers or numbers[-1] != self._number or self._is_anothers()

    def _is_anothers(self) -> bool:
        holder = self._holder(self._file(self._number))
        return bool(holder.get("token", self._token) != self._token)

    def __enter__(self) -> Lease:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _file(self, number: int) -> str:
        return f"{self._prefix}{number}"

    def _numbers(self) -> list[int]:
        found = [name.removeprefix(self._prefix) for name in self._folder.names() if name.startswith(self._prefix)]
        return sorted(int(number) for number in found if _is_number(number))

    def _text(self) -> str:
        holder = {
            "what": self._what,
            "tables": self._tables,
            "token": self._token,
            "host": socket.gethostname(),
            "machine": _machine(),
            "pid": os.getpid(),
            "started": _started(os.getpid()),
        }
        return json.dumps({**holder, "expires_ms": int(time.time() * 1000) + self._timeout_ms})

    def _renew(self) -> None:
        while not self._stop.wait(self._timeout_ms / 3000):
            try:
                self._look()
                if self.lost:
                    # Its file is gone: written again, it would stand in the way of whoever comes after the new holder.
                    return
                with self._replacing:
                    self._folder.write(self._file(self._number), self._text())
                self._renewed = time.monotonic()
            except Exception as error:
                # Of whatever kind: who does not renew is taken for dead, and must know it.
                log.warning("the lease of %s was not renewed, trying again: %s", self._prefix[:-1], error)

    def _refuse_if_held(self, number: int, certain: bool = False) -> None:
        holder = self._holder(self._file(number))
        if certain or _lives(holder):
            raise LandingError(f"the tables of {self._prefix[:-1]} are being written by another job: {_who(holder)}")

    def _refuse_if_shared(self) -> None:
        for file in self._folder.names():
            name, _, number = file.rpartition(".")
            if not _is_number(number) or f"{name}." == self._prefix:
                continue
            holder = self._holder(file)
            shared = sorted(set(self._tables) & set(holder.get("tables", ())))
            if shared and _lives(holder):
                raise LandingError(f"{shared[0]} is being written by the job {name}: {_who(holder)}")

    def _holder(self, file: str) -> dict[str, Any]:
        """Who holds it; nothing for a file that something else has put there."""
        for look in range(_LOOKS):
            if look and self._stop.wait(_LOOK_S):
                break
            try:
                holder = json.loads(self._folder.read(file))
            except Exception as error:
                log.debug("%s cannot be read: %s", file, error)
            else:
                return holder if _is_holder(holder) else {}
        return {}


def job_lease(session: SparkSession, settings: Settings, what: str = LAND) -> Lease:
    """The lease of a configured job, for its tables."""
    tables = [str(table) for table in settings.tables]
    return Lease(leases(session, settings), settings.name, settings.lease_timeout_ms, what, tables)


def filling_lease(session: SparkSession, settings: Settings) -> Lease:
    """The lease of a backfill beside the job: one at a time."""
    if settings.has_one_writer:
        raise LandingError(
            "land runs, and the warehouse's log store is for one process: commits of two overwrite each other. Stop "
            "land until backfill has ended"
        )
    return Lease(leases(session, settings), settings.name + BESIDE, settings.lease_timeout_ms, BACKFILL)


def upkeep_lease(session: SparkSession, settings: Settings) -> contextlib.AbstractContextManager[Lease | None]:
    """What upkeep beside the job needs: nothing, unless only one process may write."""
    if settings.has_one_writer:
        return job_lease(session, settings, "maintain")
    return contextlib.nullcontext()


def backfills(session: SparkSession, settings: Settings) -> bool:
    """Whether a backfill reads beside the job."""
    return holds(leases(session, settings), settings.name + BESIDE) is not None


def leases(session: SparkSession, settings: Settings) -> Folder:
    return open_folder(session, settings.lease_folder)


def _who(holder: dict[str, Any]) -> str:
    return f"{holder.get('what', 'a job')} on {holder.get('host', '?')}, process {holder.get('pid', '?')}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _is_holder(found: Any) -> TypeGuard[dict[str, Any]]:
    """Something else may lie in the folder: it holds nothing."""
    if not isinstance(found, dict):
        return False
    whole = all(type(found.get(name, 0)) is int and 0 <= found.get(name, 0) < 2**63 for name in ("pid", "expires_ms"))
    tables = found.get("tables", [])
    return whole and isinstance(tables, list) and all(isinstance(table, str) for table in tables)


def _lives(holder: dict[str, Any]) -> bool:
    if holder.get("expires_ms", 0) < time.time() * 1000:
        return False
    if holder.get("machine") != _machine():
        # Containers have processes of their own, and perhaps the same name.
        return True
    return _started(holder.get("pid", 0)) == holder.get("started")


def _machine() -> str:
    """Which processes can be seen from here: those of one start of one machine, in one namespace of processes."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{socket.gethostname()} {start} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """When a process of this machine began, which tells it from a later one with the same number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return None
        except PermissionError:
            return "?"
        return "?"


def holds(folder: Folder, name: str) -> str | None:
    """What the holder of the lease says it does; None if nobody holds it at this moment."""
    lease = Lease(folder, name, 1)
    numbers = lease._numbers()
    holder = lease._holder(lease._file(numbers[-1])) if numbers else {}
    return str(holder.get("what", "")) if _lives(holder) else None
