"""`scylla-cdc embedded replay` and `embedded record`: recordings of what a server does, compared with another server.

In: recordings or a seed, and a server's address. Out: what was compared and every difference, or a new recording.
"""

from __future__ import annotations

import argparse
import os
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connector.cli.numbers import count
from connector.cli.output import Output
from connector.errors import EmbeddedError, Problem, UsageError

if TYPE_CHECKING:
    from embedded.scylla.recordings.comparison import Comparison
    from embedded.scylla.recordings.server import Address

_SHOWN = 20


def add_replay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="recordings, of any of the three kinds")
    _add_server_arguments(parser)
    parser.add_argument(
        "--limit", type=count, default=_SHOWN, metavar="N", help=f"differences to show in full ({_SHOWN})"
    )
    parser.set_defaults(serve=replay_files)


def replay_files(args: argparse.Namespace, output: Output) -> int:
    """0 exactly when there is no difference."""
    from embedded.scylla.recordings.files import read_recording
    from embedded.scylla.recordings.replay import replay
    from embedded.scylla.recordings.server import Server, SkippedRecording

    # All files first: who mistyped one name learns it before anything is written to the server.
    recordings = [(path, read_recording(path)) for path in args.files]
    results: list[dict[str, Any]] = []
    shown = args.limit
    with ExitStack() as stack:
        server = stack.enter_context(Server(_address(args)))
        for path, recording in recordings:
            with output.progress(f"replaying {path.name}") as progress:
                try:
                    found = replay(server, recording, progress.update)
                except SkippedRecording as reason:
                    results.append({"file": str(path), "skipped": str(reason)})
                    output.say(f"{path}: skipped: {reason}")
                    continue
            results.append({"file": str(path), **_as_json(found)})
            output.say(_as_text(path, found, shown))
            shown = max(0, shown - len(found.differences))
    differences = sum(len(each.get("differences", ())) for each in results)
    output.result({"recordings": results, "differences": differences}, _summary(results, differences))
    return 1 if differences else 0


def add_record_arguments(parser: argparse.ArgumentParser) -> None:
    _add_server_arguments(parser)
    kinds = ("seeded", "answers", "histories")
    parser.add_argument("--kind", choices=kinds, default="seeded", help="what is recorded (default: seeded)")
    parser.add_argument("--seed", type=count, default=1, metavar="N", help="which tables and writes (seeded; 1)")
    parser.add_argument("--statements", type=count, default=1500, metavar="N", help="how many writes (seeded; 1500)")
    sort = parser.add_mutually_exclusive_group()
    sort.add_argument("--tablets", action="store_true", help="in a keyspace with tablets")
    sort.add_argument("--vnodes", action="store_true", help="in a keyspace without tablets (default)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="output file (default: a name like vnodes-1.jsonl.gz here)"
    )
    parser.set_defaults(serve=record_file)


def record_file(args: argparse.Namespace, output: Output) -> int:
    from embedded.scylla.recordings.files import write_recording
    from embedded.scylla.recordings.record import default_file, record
    from embedded.scylla.recordings.server import Server, SkippedRecording

    if args.statements < 1:
        raise _wrong("--statements", "is too few", str(args.statements), "1 or more")
    path: Path = args.out or Path(default_file(args.kind, args.tablets, args.seed))
    if not path.parent.is_dir():
        raise _wrong("--out", "is in a folder that does not exist", str(path), f"make {path.parent} first")
    with Server(_address(args)) as server, output.progress(f"recording {path.name}") as progress:
        try:
            recording = record(
                server,
                args.kind,
                tablets=args.tablets,
                seed=args.seed,
                statements=args.statements,
                progress=progress.update,
            )
        except SkippedRecording as reason:
            raise EmbeddedError(str(reason)) from None
        write_recording(recording, path)
        result = {"file": str(path), "kind": args.kind, "version": server.version, "tablets": args.tablets}
        output.result(result, f"{path}: a recording of {server.version} at {args.address}")
    return 0


def _as_json(found: Comparison) -> dict[str, Any]:
    return {
        "recorded_on": found.recorded_on,
        "server": found.server,
        "compared": dict(found.compared),
        "differences": [each.json() for each in found.differences],
        "deviations": [{"deviation": name, **each.json()} for name, each in found.deviations],
    }


def _as_text(path: Path, found: Comparison, shown: int) -> str:
    compared = ", ".join(f"{count} {what}" for what, count in found.compared.items())
    recorded = f"recorded on {found.recorded_on}, " if found.recorded_on else ""
    lines = [f"{path} ({recorded}replayed on {found.server}): {compared}: {_counted(len(found.differences))}"]
    for each in found.differences[:shown]:
        lines += [f"  {line}" for line in each.text().split("\n")]
    if len(found.differences) > shown:
        lines.append(f"  and {len(found.differences) - shown} more (--limit shows more, --json all)")
    named: dict[str, int] = {}
    for name, _ in found.deviations:
        named[name] = named.get(name, 0) + 1
    lines += [f"  deviation: {name} ({count})" for name, count in named.items()]
    return "\n".join(lines)


def _summary(results: list[dict[str, Any]], differences: int) -> str:
    skipped = sum("skipped" in each for each in results)
    replayed = len(results) - skipped
    text = f"{replayed} recording{'' if replayed == 1 else 's'} replayed: {_counted(differences)}"
    return f"{text}; {skipped} skipped" if skipped else text


def _counted(differences: int) -> str:
    return "1 difference" if differences == 1 else f"{differences} differences"


def _add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="HOST:PORT", help="the server, the double or a real ScyllaDB")
    parser.add_argument("--user", metavar="U", help="user name; the password is in SCYLLA_PASSWORD")
    parser.add_argument("--tls", action="store_true", help="connect with TLS; the system's authorities are trusted")
    parser.add_argument("--tls-ca", type=Path, metavar="F", help="trust this authority instead (PEM); implies --tls")
    parser.add_argument("--tls-cert", type=Path, metavar="F", help="our certificate (PEM); implies --tls")
    parser.add_argument("--tls-key", type=Path, metavar="F", help="its key (PEM)")


def _address(args: argparse.Namespace) -> Address:
    from connector.config import environment_login, parse_contact_points
    from embedded.scylla.recordings.server import Address

    try:
        (point,) = parse_contact_points(args.address)
    except ValueError:
        raise _wrong("HOST:PORT", "is not the address of one server", args.address, "127.0.0.1:9042") from None
    login = environment_login(os.environ)
    if args.user is not None and login is None:
        raise _wrong("--user", "needs a password", args.user, "set SCYLLA_PASSWORD")
    user, password = login or (None, "")
    return Address(point.host, point.port, user if args.user is None else args.user, password, _tls(args))


def _tls(args: argparse.Namespace) -> ssl.SSLContext | None:
    if args.tls_key and not args.tls_cert:
        raise _wrong("--tls-key", "needs the certificate too", str(args.tls_key), "--tls-cert F")
    if not (args.tls or args.tls_ca or args.tls_cert):
        return None
    try:
        context = ssl.create_default_context(cafile=args.tls_ca)
        # Certificates of database nodes seldom carry their names, and the driver may be led to any node.
        context.check_hostname = False
        if args.tls_cert:
            context.load_cert_chain(args.tls_cert, args.tls_key)
    except OSError as error:
        raise _wrong("--tls-ca, --tls-cert, --tls-key", f"cannot be used: {error}", None, "PEM files") from None
    return context


def _wrong(name: str, problem: str, value: str | None, suggestion: str) -> UsageError:
    return UsageError([Problem(name, problem, value, suggestion, "command line")])
