"""`scylla-cdc embedded check HOST:PORT`: the suite of this project against a ScyllaDB of one's own.

In: the subcommand's options. Out: what `tests/real` writes: a page of results, its path on stdout. The tests are part
of a clone, not of the installed package, so they are run as a process of the clone.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from connector.cli.output import Output
from connector.errors import EmbeddedError
from connector.own_python import apart
from connector.stop_signals import hangup

_CLONE = Path(__file__).resolve().parents[2]
_OPTIONS = ("user", "tls", "api", "only", "soak_minutes", "output")


def add_check(servers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand `check`."""
    check = servers.add_parser("check", help="run this project's ScyllaDB tests on your own cluster")
    check.add_argument("scylla", metavar="HOST:PORT[,…]", help="contact points of the cluster")
    check.add_argument("--user", metavar="USER", help="user name; the password is taken from SCYLLA_PASSWORD")
    check.add_argument("--tls", metavar="CA.pem", help="use TLS and trust these certificates, or `system`")
    check.add_argument("--api", metavar="URL", help="a node's REST API, for new vnode generations: http://node:10000")
    check.add_argument("--only", metavar="PART,…", help="semantics, reader, worker, landing, recordings, soak (all)")
    check.add_argument("--soak-minutes", metavar="N", help="how long the soak injects faults (default: 3)")
    check.add_argument("--output", metavar="FILE.md", help="the report (default: real-VERSION.md)")
    check.add_argument("-k", dest="expression", metavar="WORDS", help="only tests with matching names, as in pytest")
    check.add_argument("--sweep", action="store_true", help="only drop keyspaces left behind by killed checks")
    check.set_defaults(serve=_check)


def _check(args: argparse.Namespace, output: Output) -> int:
    if not (_CLONE / "tests" / "real" / "__main__.py").is_file():
        raise EmbeddedError(
            f"the tests are not there: they are part of a clone of the project, not of the installed package "
            f"({_CLONE}). Clone it, and in the clone run: make real SCYLLA={args.scylla}"
        )
    options = [f"--{name.replace('_', '-')}={value}" for name in _OPTIONS if (value := getattr(args, name)) is not None]
    options += ["-k", args.expression] if args.expression else []
    options += ["--sweep"] if args.sweep else []
    with tempfile.TemporaryDirectory(prefix="scylla-cdc-") as folder:
        document = Path(folder) / "result.json"
        status, said = _to_its_end([*options, f"--output-json={document}", args.scylla])
        if document.is_file():
            output.result(json.loads(document.read_text(encoding="utf-8")), said.strip())
        elif said:
            output.say(said.strip())
    return status


def _to_its_end(options: list[str]) -> tuple[int, str]:
    """Status and stdout. Ctrl-C, SIGTERM and SIGHUP are passed on: the keyspaces are dropped before it ends."""
    process = subprocess.Popen(
        # Paths of the user's are relative to where the command was given; modules are the clone's.
        [sys.executable, *apart(), "-c", _START, str(_CLONE), *options],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    before = {each: signal.signal(each, lambda *_: process.terminate()) for each in (signal.SIGTERM, *hangup())}
    try:
        while True:
            try:
                said, _ = process.communicate()
                return process.returncode, said
            except KeyboardInterrupt:
                process.terminate()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from tests.real.__main__ import main; sys.exit(main())"
