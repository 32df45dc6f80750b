"""A soak by hand for the control plane: a connector is paused, stopped, deleted, changed and restarted while it works.

    .venv/bin/python -m tests.soak.control --minutes 5 --seeds 1,2

Two processes of one group, without files; each request goes to one of them, whichever. Processes and the broker are
killed and paused in between, tables leave the connector's list and come back. Ends with 1 when a record is missing,
doubled or out of order at its end, when a request is answered with 500, or when the processes disagree for long.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from embedded.kafka import TO_BE_KILLED, EmbeddedKafka
from embedded.ports import free_port
from tests.servers.double import Double
from tests.servers.patience import let_pass, seldom
from tests.soak.mishaps import Chaos, Mishap, OneBroker, Streams, until_then
from tests.worker.harness import Service, Workload, cql, create_table, exactly_once, until

HALTED = {"PAUSED", "STOPPED"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.control", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="of requests, for each seed (3)")
    parser.add_argument("--seeds", default="1", help="1,2,3")
    parser.add_argument("--folder", type=Path, help="where logs are kept (a temporary folder)")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="scylla-cdc-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    for seed in map(int, given.seeds.split(",")):
        soak(seed, given.minutes * 60, folder)
    return 0


class Control:
    """What is asked of the processes. ``answers``: how often each request had which status."""

    def __init__(self, service: Service, draw: random.Random, tables: list[str]) -> None:
        self._service, self._random, self._tables = service, draw, tables
        self._definition = json.loads(service.config_file.read_text())
        self._path = f"/connectors/{service.name}"
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.answers: Counter[tuple[str, int]] = Counter()
        self.mishaps = [
            Mishap(3, self.pause),
            Mishap(2, self.stop),
            Mishap(2, self.restart),
            Mishap(1, self.restart_failed),
            Mishap(4, self.change_tables),
            Mishap(2, self.change_something),
            Mishap(2, self.delete),
            Mishap(2, self.kill_worker),
            Mishap(2, self.kill_process),
            Mishap(1, self.pause_worker),
        ]

    def begin(self) -> None:
        for _ in range(2):
            self._start(free_port())
        self._until_answered("POST", "/connectors", self._definition, 201)

    def _start(self, port: int) -> None:
        self._processes[port] = self._service.start("--http-port", str(port), files=False)

    def ask(self, method: str, path: str, body: Any = None, port: int | None = None) -> tuple[int, Any]:
        """0: nobody answers."""
        port = port or self._random.choice(list(self._processes))
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        except OSError:
            return 0, None
        said = json.loads(text) if text else None
        self.answers[f"{method} {path.replace(self._path, '…')}", status] += 1
        if status >= 500:
            print(f"{method} {path}: {status} {said}", flush=True)
        return status, said

    def _until_answered(self, method: str, path: str, body: Any, *wanted: int) -> None:
        last: tuple[int, Any] = (0, None)

        def answered() -> bool:
            nonlocal last
            last = self.ask(method, path, body)
            return last[0] in wanted

        until(answered, 90, lambda: f"{wanted} for {method} {path}, not {last}", step=seldom)

    # -- requests ----------------------------------------------------------------------------------------------

    def pause(self) -> str:
        self._until_answered("PUT", f"{self._path}/pause", None, 202)
        let_pass(self._random.uniform(0, 4))
        self._until_answered("PUT", f"{self._path}/resume", None, 202)
        return "pause and resume"

    def stop(self) -> str:
        self._until_answered("PUT", f"{self._path}/stop", None, 204)
        let_pass(self._random.uniform(0, 4))
        self.ask("GET", f"{self._path}/offsets")
        self._until_answered("PUT", f"{self._path}/resume", None, 202)
        return "stop and resume"

    def restart(self) -> str:
        status, _ = self.ask("POST", f"{self._path}/restart?includeTasks=true")
        task, _ = self.ask("POST", f"{self._path}/tasks/0/restart")
        return f"restart: {status}, of a task: {task}"

    def restart_failed(self) -> str:
        return (
            f"restart of what failed: {self.ask('POST', f'{self._path}/restart?includeTasks=true&onlyFailed=true')[0]}"
        )

    def change_tables(self) -> str:
        some = self._random.sample(self._tables, self._random.randint(1, len(self._tables)))
        self._put(some)
        let_pass(self._random.uniform(0, 4))
        self._put(self._tables)
        return f"{len(some)} of {len(self._tables)} tables, and back"

    def change_something(self) -> str:
        size = str(self._random.choice([1000, 2000, 3000]))
        self._definition["config"]["scylla.query.time.window.size"] = size
        self._put(self._tables)
        return f"window of {size} ms"

    def _put(self, tables: list[str]) -> None:
        config = {**self._definition["config"], "scylla.table.names": ",".join(tables)}
        self._until_answered("PUT", f"{self._path}/config", config, 200, 201)

    def delete(self) -> str:
        self._until_answered("DELETE", self._path, None, 204, 404)
        let_pass(self._random.choice([0.0, 0.2, 2.0]))

        def there() -> bool:
            # For a second the other process may not have heard of it, and say that there is one already.
            self.ask("POST", "/connectors", self._definition)
            let_pass(1.5)
            return {self.ask("GET", self._path, port=port)[0] for port in self._processes} == {200}

        until(there, 90, "the connector that was created again", step=lambda: None)
        return "delete and create"

    # -- processes ---------------------------------------------------------------------------------------------

    def kill_worker(self) -> str:
        return self._signalled(signal.SIGKILL, "kill worker")

    def pause_worker(self) -> str:
        said = self._signalled(signal.SIGSTOP, "pause worker")
        let_pass(5)
        for pid in self._service.workers():
            os.kill(pid, signal.SIGCONT)
        return said

    def _signalled(self, number: int, said: str) -> str:
        workers = self._service.workers()
        if workers:
            os.kill(self._random.choice(workers), number)
        return said if workers else f"no {said}"

    def kill_process(self) -> str:
        port = self._random.choice(list(self._processes))
        run = self._processes[port]
        run.kill()
        run.wait()
        self._service.runs.remove(run)
        let_pass(self._random.choice([0.0, 3.0]))
        self._start(port)
        return "kill process"

    def agreed(self) -> bool:
        """All say that all is running, and the same of it."""
        said = [self.ask("GET", f"{self._path}/status", port=port) for port in self._processes]
        first = said[0][1]
        return (
            all(status == 200 and document == first for status, document in said)
            and first["connector"]["state"] == "RUNNING"
            and {task["state"] for task in first["tasks"]} == {"RUNNING"}
        )


def soak(seed: int, seconds: float, folder: Path) -> None:
    draw = random.Random(seed)
    with (
        Double(ring_delay=0, seed=seed, nodes=1, shards=2) as scylla,
        EmbeddedKafka(properties=TO_BE_KILLED) as kafka,
        cql(scylla) as session,
    ):
        tables = [
            create_table(scylla, session, f"{name}{seed}", tablets=name != "vnodes")
            for name in ("vnodes", "tablets", "more")
        ]
        service = Service(folder, scylla, kafka.bootstrap_servers, f"control{seed}", tables)
        control = Control(service, draw, tables)
        chaos = Chaos(
            draw,
            [*control.mishaps, *OneBroker(kafka).mishaps, *Streams(scylla, session, draw, tables[1]).mishaps],
        )
        workload = Workload(session, tables, seed)
        try:
            control.begin()
            workload.start()
            chaos.go_on(f"seed {seed}", until_then(seconds), pauses=(0, 3))
            workload.finish()
            delivered = [exactly_once(service, session, table, seconds=180) for table in tables]
            until(control.agreed, 90, "one answer of all processes", step=seldom)
            wrong = {what: count for what, count in control.answers.items() if what[1] >= 500}
            print(f"seed {seed}: {sum(delivered)} rows, once each; {len(chaos.happened)} requests and mishaps; {wrong}")
            assert not wrong
        except BaseException:
            print(f"seed {seed}: {', '.join(chaos.happened)}\n{control.answers}\nlog: {folder}", file=sys.stderr)
            raise
        finally:
            service.close()


if __name__ == "__main__":
    sys.exit(main())
