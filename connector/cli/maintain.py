"""`maintain`: removes merged changes that no reader needs any more, and compacts the landed tables' files.

In: a landing configuration. Out: what was done, or with `--dry-run` what would be.
"""

from __future__ import annotations

import argparse

from connector.cli.land import with_jars
from connector.cli.narrated_spark import narrated_spark
from connector.cli.output import Output


class Maintain:
    name = "maintain"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("config", metavar="LANDING.json", help="the landing configuration")
        parser.add_argument("--dry-run", action="store_true", help="only report what would be done")

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from spark_jobs.config import load_settings
        from spark_jobs.jobs import maintain

        settings = with_jars(load_settings(args.config))
        with narrated_spark(output, settings) as (session, narration):
            done = maintain(session, settings, args.dry_run, narration.say)
        text = "\n".join(upkeep.text() for upkeep in done)
        output.result(
            {"dry_run": args.dry_run, "tables": [upkeep.as_json() for upkeep in done]},
            f"Dry run, nothing was changed.\n{text}" if args.dry_run else text,
        )
        return int(any(upkeep.problem is not None for upkeep in done))


COMMAND = Maintain()
