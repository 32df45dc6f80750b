"""`backfill`: lands the rows that the tables had before their logs.

In: a landing configuration, and where the source is. Out: how many rows were read and landed.
"""

from __future__ import annotations

import argparse

from connector.cli.land import with_jars
from connector.cli.narrated_spark import narrated_spark
from connector.cli.output import Output
from connector.cli.source_options import add_source_arguments, chosen_tables, source_of


class Backfill:
    name = "backfill"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("config", metavar="LANDING.json", help="the landing configuration")
        add_source_arguments(parser)
        parser.add_argument(
            "--lists",
            choices=("refuse", "skip"),
            default="refuse",
            help="what to do with lists, whose keys SELECT does not return",
        )

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from spark_jobs.config import load_settings
        from spark_jobs.jobs import backfill, refuse_lists

        settings = with_jars(load_settings(args.config))
        source, tables = source_of(args, settings), chosen_tables(args, settings)
        if args.lists != "skip":
            refuse_lists(settings, source.access, tables)
        with narrated_spark(output, settings) as (session, narration):
            done = backfill(session, settings, source.access, tables, args.lists == "skip", narration.say)
        output.result(
            {"tables": {filled.table: filled.as_json() for filled in done}}, "\n".join(filled.text() for filled in done)
        )
        return 0


COMMAND = Backfill()
