"""`verify`: compares the landed tables with their source, cell by cell.

In: a landing configuration, and where the source is. Out: the differences, with both values and write times; status 0
exactly when there is none.
"""

from __future__ import annotations

import argparse

from connector.cli.land import with_jars
from connector.cli.narrated_spark import narrated_spark
from connector.cli.numbers import count, positive
from connector.cli.output import Output
from connector.cli.source_options import add_source_arguments, chosen_tables, source_of


class Verify:
    name = "verify"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("config", metavar="LANDING.json", help="the landing configuration")
        add_source_arguments(parser)
        parser.add_argument(
            "--rounds", type=positive, default=5, metavar="N", help="how often to compare differing rows (5)"
        )
        parser.add_argument(
            "--wait",
            type=_seconds,
            default=30.0,
            metavar="S",
            help="stop waiting when landing makes no progress for this long (30)",
        )
        parser.add_argument("--limit", type=count, default=100, metavar="N", help="differences to list per table (100)")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from spark_jobs.config import load_settings
        from spark_jobs.verify import Limits, as_json, as_text, total, verify

        settings = with_jars(load_settings(args.config))
        source, tables = source_of(args, settings), chosen_tables(args, settings)
        limits = Limits(args.rounds, args.wait, source.confidence_ms, args.limit)
        with narrated_spark(output, settings) as (session, narration):
            narration.say("Comparing with the source …")
            verdicts = verify(session, settings, source.access, tables, limits, narration.say)
        output.result(as_json(verdicts), as_text(verdicts))
        return 1 if total(verdicts) else 0


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{given} is not a number of seconds")
    return seconds


COMMAND = Verify()
