"""`scylla-cdc embedded`: the embedded servers in the foreground, one JSON line on stdout when they are ready.

Also recordings of what servers do, which `recordings` beside it replays and makes, and the check of a cluster of one's
own in `check`.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from connector.cli.numbers import port
from connector.cli.output import Output
from connector.errors import EmbeddedError
from connector.stop_signals import stopped_by
from embedded.commands.check import add_check

if TYPE_CHECKING:
    from embedded.scylla.process import EmbeddedScylla

_LOOK_SECONDS = 0.2


class EmbeddedCommand:
    name = "embedded"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        from embedded.commands.recordings import add_record_arguments, add_replay_arguments
        from embedded.scylla.main import add_arguments as add_scylla_arguments

        servers = parser.add_subparsers(dest="server", metavar="WHAT", title="servers and recordings", required=True)
        scylla = servers.add_parser("scylla", help="a CQL server with ScyllaDB's change log")
        add_scylla_arguments(scylla)
        scylla.set_defaults(serve=_serve_scylla)
        kafka = servers.add_parser("kafka", help="a real Apache Kafka broker")
        kafka.add_argument("--port", type=port, metavar="N", help="port (default: a free one)")
        kafka.add_argument(
            "--data", type=Path, metavar="DIR", help="keep the data in this folder (default: deleted at the end)"
        )
        kafka.set_defaults(serve=_serve_kafka)
        both = servers.add_parser("up", help="both; --port is ScyllaDB's")
        add_scylla_arguments(both)
        both.add_argument("--kafka-port", type=port, metavar="N", help="port (default: a free one)")
        both.add_argument(
            "--data", type=Path, metavar="DIR", help="keep Kafka's data in this folder (default: deleted at the end)"
        )
        both.set_defaults(serve=_serve_both)
        add_record_arguments(servers.add_parser("record", help="record what a server does, to replay it on another"))
        add_replay_arguments(
            servers.add_parser("replay", help="replay recordings on a server and report every difference")
        )
        add_check(servers)

    def run(self, args: argparse.Namespace, output: Output) -> int:
        status: int = args.serve(args, output)
        return status


def _serve_scylla(args: argparse.Namespace, output: Output) -> int:
    from embedded.scylla.main import serve

    return serve(args)


def _serve_kafka(args: argparse.Namespace, output: Output) -> int:
    from embedded.kafka import EmbeddedKafka

    with (
        stopped_by(signal.SIGTERM, signal.SIGHUP) as stop,
        EmbeddedKafka(port=args.port or None, data=args.data) as broker,
    ):
        output.record({"kafka": broker.bootstrap_servers})
        while not stop.wait(_LOOK_SECONDS):
            if (status := broker.wait(0)) is not None:
                raise EmbeddedError(f"the Kafka broker exited unexpectedly (status {status})")
    return 0


def _serve_both(args: argparse.Namespace, output: Output) -> int:
    from embedded.kafka import EmbeddedKafka

    with (
        stopped_by(signal.SIGTERM, signal.SIGHUP) as stop,
        _scylla(args) as scylla,
        EmbeddedKafka(port=args.kafka_port or None, data=args.data) as broker,
    ):
        output.record({"kafka": broker.bootstrap_servers, "scylla": scylla.address, "api": scylla.api})
        while not stop.wait(_LOOK_SECONDS):
            for name, server in (("Kafka broker", broker), ("ScyllaDB server", scylla)):
                if (status := server.wait(0)) is not None:
                    raise EmbeddedError(f"the {name} exited unexpectedly (status {status})")
    return 0


def _scylla(args: argparse.Namespace) -> EmbeddedScylla:
    from embedded.scylla.process import EmbeddedScylla

    return EmbeddedScylla(
        host=str(args.host),
        port=args.port or None,
        api_port=args.api_port or None,
        nodes=args.nodes,
        datacenters=args.datacenters or (),
        vnodes=args.vnodes,
        shards=args.shards,
        ring_delay=args.ring_delay,
        init=args.init,
        user=args.user,
        password=args.password,
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
        tls_client_ca=args.tls_client_ca,
        seed=args.seed,
        like=args.like,
        without=args.without,
    )


COMMAND = EmbeddedCommand()
