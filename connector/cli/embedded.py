"""`scylla-cdc embedded`: the embedded servers in the foreground, one JSON line on stdout when they are ready."""

from __future__ import annotations

import argparse
from pathlib import Path

from connector.cli.output import Output
from connector.cli.stop import stop_on_sigterm
from connector.errors import EmbeddedError


class EmbeddedCommand:
    name = "embedded"
    help = "run the embedded servers in the foreground"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        servers = parser.add_subparsers(dest="server", metavar="SERVER", title="servers", required=True)
        kafka = servers.add_parser("kafka", help="a real Apache Kafka broker")
        _add_kafka_arguments(kafka)

    def run(self, args: argparse.Namespace, output: Output) -> int:
        return _run_kafka(args, output)


def _add_kafka_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=port_number, metavar="N", help="listen on this port (default: a free one)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data here (default: nowhere)")


def _run_kafka(args: argparse.Namespace, output: Output) -> int:
    from embedded.kafka import EmbeddedKafka

    with stop_on_sigterm() as stop, EmbeddedKafka(port=args.port or None, data=args.data) as broker:
        output.record({"kafka": broker.bootstrap_servers})
        while not stop.wait(0.2):
            status = broker.wait(0)
            if status is not None:
                raise EmbeddedError(
                    f"the Kafka broker ended by itself (status {status}); see {broker.data / 'broker.log'}"
                )
    return 0


def port_number(text: str) -> int:
    """An argparse type; 0 is the usual way to ask for a free port."""
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number < 65536:
        raise argparse.ArgumentTypeError(f"{text} is not a port number from 0 to 65535")
    return number


COMMAND = EmbeddedCommand()
