"""The embedded server as a process of its own, for tests and benchmarks: it never shares the caller's interpreter.

In: the options of `embedded scylla` as keyword arguments. Out: `EmbeddedScylla` with addresses and an admin client.
The process ends with the block, or with the process that started it, whatever happens to that.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final

from connector.errors import EmbeddedError
from connector.own_python import module_command
from embedded.scylla.admin_client import AdminClient
from embedded.scylla.main import DEFAULT_RING_DELAY, DEFAULT_VNODES

if TYPE_CHECKING:
    from embedded.scylla.preload_request import ExpectedRows

_ROOT: Final = Path(__file__).resolve().parents[2]
# A server that cannot start ends, and says why: this is for one that hangs, where the processor is wanted by others.
_START_SECONDS: Final = 240.0
_STOP_SECONDS: Final = 10.0


class EmbeddedScylla:
    """`with EmbeddedScylla(ring_delay=0) as scylla:` connect a driver to `scylla.host` and `scylla.port`."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        api_port: int | None = None,
        nodes: int = 1,
        datacenters: Sequence[str] = (),
        vnodes: int = DEFAULT_VNODES,
        shards: int = 1,
        ring_delay: float = DEFAULT_RING_DELAY,
        init: Path | str | None = None,
        user: str | None = None,
        password: str | None = None,
        tls_cert: Path | str | None = None,
        tls_key: Path | str | None = None,
        tls_client_ca: Path | str | None = None,
        seed: int | None = None,
        like: str | None = None,
        without: Sequence[str] = (),
        start_seconds: float = _START_SECONDS,
    ) -> None:
        options = {
            "host": host,
            "port": port,
            "api-port": api_port,
            "nodes": nodes,
            "datacenters": ",".join(datacenters) or None,
            "vnodes": vnodes,
            "shards": shards,
            "ring-delay": ring_delay,
            "init": init,
            "user": user,
            "tls-cert": tls_cert,
            "tls-key": tls_key,
            "tls-client-ca": tls_client_ca,
            "seed": seed,
            "like": like,
        }
        self.host = host
        self.port = 0
        self._arguments = [f"--{name}={value}" for name, value in options.items() if value is not None]
        self._arguments += [f"--without={extension}" for extension in without]
        self._password = password
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: AdminClient | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> EmbeddedScylla:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """`HOST:PORT`, of the first node."""
        return f"{self.host}:{self.port}"

    @property
    def api(self) -> str:
        """The admin interface's address."""
        return self.admin.url

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            raise EmbeddedError("the embedded ScyllaDB is not running")
        return self._admin

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EmbeddedError("the embedded ScyllaDB is not running")
        return self._process.pid

    @property
    def log(self) -> str:
        """What the server wrote to stderr so far."""
        if self._log is None:
            return ""
        # The server writes through the same file position, which must stay where it is.
        number = self._log.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode("utf-8", "replace")

    def start(self) -> EmbeddedScylla:
        """Start the process and wait until it is ready."""
        if self._process is not None:
            raise EmbeddedError("the embedded ScyllaDB is running already")
        environment = dict(os.environ)
        places = [str(_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(places)
        # On a command line every user of the machine could read it.
        if self._password is not None:
            environment["SCYLLA_PASSWORD"] = self._password
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            module_command("embedded.scylla", *self._arguments, "--end-with-stdin"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )
        try:
            ready = json.loads(self._ready_line(self._process))
        except BaseException:
            self.kill()
            raise
        self.port = int(ready["scylla"].rpartition(":")[2])
        self._admin = AdminClient(ready["api"])
        return self

    def _ready_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + self._start_seconds
        line = b""
        while not line.endswith(b"\n"):
            readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise EmbeddedError(f"the embedded ScyllaDB was not ready after {self._start_seconds} s: {self.log}")
            piece = os.read(process.stdout.fileno(), 4096)
            if not piece:
                process.wait()
                raise EmbeddedError(
                    f"the embedded ScyllaDB could not start: {self.log.strip().removeprefix('error: ')}"
                )
            line += piece
        return line

    def wait(self, timeout: float | None = None) -> int | None:
        """Its exit status once it has ended by itself; None if it still runs after so many seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """End it in an orderly way; by force if it does not."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            # One that was paused would not see its signal.
            process.send_signal(signal.SIGCONT)
            process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        self._reap(process)

    def kill(self) -> None:
        """End it as a crash would. All it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._reap(self._process)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if self._log is not None:
            self._log.close()
        self._process = self._admin = self._log = None

    def preload(self, table: str, rows: int, **options: Any) -> ExpectedRows:
        """Fill the log of a table (`ks.t`) with generated rows (options: `PreloadSpec`, and `base=True` for the base
        table's rows too); tells what the log must show now. Preload before a reader starts: the oldest stream set is
        made to count from before the first row."""
        from embedded.scylla.preload_request import ExpectedRows

        return ExpectedRows(self.admin.preload(table, rows, **options))

    def pause(self) -> None:
        """Stop it in its tracks: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
