"""The suite against a cluster of somebody's own: `scylla-cdc embedded check HOST:PORT` and `make real` run this.

In: addresses, a login, parts of the suite. Out: `real-<version>.md` (and JSON), exit status 0 if everything held, 1 if
not or if the cluster could not be reached. The keyspaces of the run are dropped whatever happens to the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cassandra import AuthenticationFailed, DriverException
from cassandra.cluster import NoHostAvailable

from connector import __version__
from tests.real.page import Outcome, Result, outcomes
from tests.servers import keyspaces
from tests.servers.capabilities import ABILITIES
from tests.servers.foreign import ForeignScylla, parse_points
from tests.servers.scylla import SYSTEM_STORE, Login

ROOT = Path(__file__).resolve().parents[2]
PARTS = {
    "semantics": ["tests/embedded/scylla"],
    "reader": ["tests/source"],
    "worker": ["tests/worker"],
    "landing": ["tests/spark_jobs"],
    "recordings": ["tests/real/recorded.py"],
    "soak": [],
}
_STOP_SECONDS = 60


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        points = parse_points(given.scylla)
        chosen = [part for part in given.only.split(",") if part] or list(PARTS)
        if unknown := [part for part in chosen if part not in PARTS]:
            raise ValueError(f"--only {','.join(unknown)}: the parts are {', '.join(PARTS)}")
        if given.user and not os.environ.get("SCYLLA_PASSWORD"):
            raise ValueError(f"the password of {given.user} is taken from SCYLLA_PASSWORD, which is not set")
        login = Login(given.user, os.environ.get("SCYLLA_PASSWORD") if given.user else None, given.tls)
        if given.tls not in (None, SYSTEM_STORE) and not Path(given.tls).is_file():
            raise ValueError(f"--tls {given.tls}: there is no such file of certificates")
        login.context()
    except (ValueError, OSError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    scylla = ForeignScylla(points, login=login, api=given.api)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        scylla.connect()
    except (NoHostAvailable, AuthenticationFailed, DriverException, OSError) as error:
        print(_unreachable(given.scylla, error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return _sweep(scylla) if given.sweep else _check(scylla, given, chosen)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    made.add_argument("scylla", metavar="HOST:PORT[,…]", help="contact points of the cluster")
    made.add_argument("--user", metavar="USER", help="who logs in; the password is taken from SCYLLA_PASSWORD")
    made.add_argument("--tls", metavar="CA.pem", help="encrypted; trusts these certificates, or `system`")
    made.add_argument("--api", metavar="URL", help="a node's REST API, for new vnode generations: http://node:10000")
    made.add_argument("--only", default="", metavar="PART,…", help=f"parts of the suite: {', '.join(PARTS)} (all)")
    made.add_argument("--soak-minutes", type=float, default=3.0, metavar="N", help="of the soak's mishaps (3)")
    made.add_argument("--output", type=Path, metavar="FILE.md", help="the result (default: real-VERSION.md)")
    made.add_argument("--output-json", type=Path, metavar="FILE.json", help="the result for machines, too")
    made.add_argument("--sweep", action="store_true", help="only drop what runs that were killed left behind")
    made.add_argument(
        "-k", dest="expression", default="", metavar="WORDS", help="only tests of these names, as pytest's"
    )
    return made


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _unreachable(address: str, error: Exception) -> str:
    """One line, with what to look at."""
    causes = error.errors if isinstance(error, NoHostAvailable) else {"": error}
    found = sorted({str(each).partition("\n")[0] for each in dict(causes).values()})
    words = "; ".join(found) or "there is no such host"
    if "authentic" in words.lower() or "credentials" in words.lower():
        return f"{address} refused the login: {words}. Look at --user and SCYLLA_PASSWORD."
    return f"{address} cannot be reached: {words}. Look at the address, and at --user and --tls if it asks for them."


def _sweep(scylla: ForeignScylla) -> int:
    """Drop what earlier runs left: keyspaces of this tool's names, whose run has its mark."""
    left = keyspaces.runs(scylla.session)
    for run, began_ms in left.items():
        began = datetime.fromtimestamp(int(began_ms) / 1000, UTC).isoformat(" ", "seconds")
        dropped = keyspaces.drop(scylla.session, run)
        print(f"run {run} of {began}: dropped {', '.join(dropped)}")
    print(f"{len(left)} run{'' if len(left) == 1 else 's'} had left keyspaces behind")
    if recordings := keyspaces.drop_recordings(scylla.session):
        print(f"recordings that were replayed or made: dropped {', '.join(recordings)}")
    scylla.close()
    return 0


def _check(scylla: ForeignScylla, given: argparse.Namespace, chosen: Sequence[str]) -> int:
    began = time.monotonic()
    result = Result(
        scylla.shape.version,
        scylla.shape.text(),
        datetime.now(UTC).isoformat(" ", "minutes").replace("+00:00", " UTC"),
        __version__,
    )
    print(f"ScyllaDB {result.version}: {result.cluster}", file=sys.stderr)
    try:
        if left := keyspaces.runs(scylla.session):
            result.remarks.append(
                f"There are keyspaces of other checks, running or killed ({', '.join(left)}); --sweep drops them."
            )
        with scylla, _tidied(scylla):
            result.able = [name for name in ABILITIES if scylla.able(name)]
            result.missing = dict(scylla.abilities.missing)
            _run(scylla, given, chosen, result)
    except KeyboardInterrupt:
        result.finished = False
        result.remarks.append("The run was interrupted.")
    result.seconds = time.monotonic() - began
    output = given.output or Path(f"real-{result.version}.md")
    output.write_text(result.markdown(), encoding="utf-8")
    if given.output_json is not None:
        given.output_json.write_text(json.dumps(result.document(), indent=2) + "\n", encoding="utf-8")
    for each in result.those("differed"):
        print(f"differed: {each.name}", file=sys.stderr)
    print(output)
    return 130 if not result.finished and "interrupted" in result.remarks[-1] else 0 if result.held else 1


@contextlib.contextmanager
def _tidied(scylla: ForeignScylla) -> Iterator[None]:
    """The keyspaces go before anything can interrupt that."""
    try:
        yield
    finally:
        with _deaf():
            keyspaces.drop(scylla.session, scylla.run)


def _run(scylla: ForeignScylla, given: argparse.Namespace, chosen: Sequence[str], result: Result) -> None:
    """Pytest over the chosen parts, then the soak; each in a process, so that none takes the keyspaces' end with it."""
    options = [f"--scylla={given.scylla}", f"--scylla-run={scylla.run}"]
    options += [f"--scylla-user={given.user}"] if given.user else []
    options += (
        [f"--scylla-tls={Path(given.tls).resolve() if given.tls != SYSTEM_STORE else given.tls}"] if given.tls else []
    )
    options += [f"--scylla-api={given.api}"] if given.api else []
    with tempfile.TemporaryDirectory(prefix="scylla-cdc-check-") as folder:
        report = Path(folder) / "outcomes"
        report.touch()
        paths = [path for part in chosen for path in PARTS[part]]
        if paths:
            words = ["-k", given.expression] if given.expression else []
            command = [*("-m", "pytest", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors")]
            command += [f"--scylla-report={report}", *options, *words]
            try:
                status = _process([*command, *paths])
            finally:
                result.outcomes += outcomes(report.read_text(encoding="utf-8").splitlines())
            # 1: some tests failed, which the outcomes tell. 5: none was chosen.
            if status not in (0, 1, 5):
                result.finished = False
                result.remarks.append(f"The tests ended before their time, with status {status}.")
        if "soak" in chosen and given.soak_minutes > 0 and not given.expression:
            result.outcomes.append(_soak(options, given.soak_minutes, Path(folder)))


def _soak(options: Sequence[str], minutes: float, folder: Path) -> Outcome:
    begun = time.monotonic()
    log = folder / "soak.log"
    with open(log, "w", encoding="utf-8") as lines:
        status = _process(["-m", "tests.soak", f"--minutes={minutes}", f"--folder={folder}", *options], lines.fileno())
    said = log.read_text(encoding="utf-8")
    print(said[-2_000:], file=sys.stderr)
    verdict = "held" if status == 0 else "differed"
    reason = "" if status == 0 else said.strip()[-500:]
    return Outcome("soak", f"tests.soak --minutes {minutes:g}", verdict, reason, time.monotonic() - begun)


def _process(arguments: Sequence[str], output: int | None = None) -> int:
    """Run Python to its end. An interruption is passed on, and waited for: its tests drop what they made."""
    command = [sys.executable, *arguments]
    # A session of its own: Ctrl-C at a terminal reaches this process, which passes it on once.
    target = output if output is not None else sys.stderr.fileno()
    with subprocess.Popen(
        command, cwd=ROOT, stdout=target, stderr=target, stdin=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            return process.wait()
        except BaseException:
            with _deaf():
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
            raise


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Further signals do not interrupt the tidying up."""
    before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


if __name__ == "__main__":
    sys.exit(main())
