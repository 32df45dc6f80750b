"""`land`: Spark lands the changes of the configured tables until stopped, or once.

In: a landing configuration. Out: landed tables; a summary on stdout. The jars come from the pinned set unless the
configuration or the environment names others.
"""

from __future__ import annotations

import argparse
import threading
from functools import partial
from typing import TYPE_CHECKING, Final, TextIO, cast

from connector.cli.last_resort import LastResort
from connector.cli.moments import FORMS, moment, told
from connector.cli.output import Output
from connector.cli.source_options import configured_access
from connector.errors import Problem, UsageError
from connector.stop_signals import ENDING, on_signals

#: Of a job that was asked to end: a while after it has given up what was under way.
END_SECONDS: Final = 45.0

if TYPE_CHECKING:
    from connector.table_name import TableName
    from spark_jobs.config import Settings


class Land:
    name = "land"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("config", metavar="LANDING.json", help="the landing configuration")
        parser.add_argument("--once", action="store_true", help="exit when everything there is now has landed")
        parser.add_argument("--rebuild", metavar="KS.T", help="empty this table and land it again from the start")
        parser.add_argument(
            "--truncated-at",
            metavar="TIME",
            type=moment,
            help=f"with --rebuild: ignore everything written up to this time: {FORMS}",
        )
        parser.add_argument(
            "--lists", choices=("refuse", "skip"), help="with --rebuild: lists of rows that are read from the source"
        )

    def run(self, args: argparse.Namespace, output: Output) -> int:
        from spark_jobs.config import load_settings
        from spark_jobs.land import land
        from spark_jobs.stream import Progress

        settings = with_jars(load_settings(args.config))
        if args.truncated_at is not None and not args.rebuild:
            raise UsageError([Problem("--truncated-at", "only goes with --rebuild", file="command line")])
        if args.lists is not None and not args.rebuild:
            raise UsageError([Problem("--lists", "only goes with --rebuild", file="command line")])
        progress = Progress(cast(TextIO, output.stderr), as_json=getattr(args, "json", False))
        output.say("Starting Spark …")
        if args.rebuild:
            from spark_jobs.jobs import rebuild
            from spark_jobs.session import needing_spark, start_session

            table, skip = one_table(args.rebuild), args.lists == "skip"
            if args.truncated_at is not None:
                output.say(f"{table}: nothing written up to {told(args.truncated_at)} will exist")
            session = start_session(settings.session_config())
            with needing_spark(session):
                filled = rebuild(
                    session, settings, table, args.truncated_at, configured_access(settings), skip, output.say
                )
            if filled is not None:
                output.say(f"From the source: {filled.text()}")
        stop, last_resort = threading.Event(), LastResort(END_SECONDS, status=1)
        try:
            with on_signals(ENDING, partial(last_resort.obey, stop)):
                status = land(settings, args.once, progress, stop)
        finally:
            last_resort.disarm()
        output.result({"status": status, **progress.summary()}, progress.text())
        return status


def one_table(text: str) -> TableName:
    """The table that an option names."""
    from connector.config import Invalid, parse_table_names

    try:
        return parse_table_names(text)[0]
    except Invalid as invalid:
        raise UsageError([Problem("--rebuild", invalid.problem, text, invalid.suggestion, "command line")]) from invalid


def with_jars(settings: Settings) -> Settings:
    """The settings with the pinned jars, unless the user names jars or packages of their own."""
    import os

    from spark_jobs.session import JARS_VARIABLE

    given = settings.passed_on
    if "spark.jars" in given or "spark.jars.packages" in given or JARS_VARIABLE in os.environ:
        return settings
    from spark_jobs.jvm import find_java, resolve
    from spark_jobs.sinks import table_format

    os.environ.update(find_java().spark_environment())
    jars = [jar for name in table_format(settings.session_config()).jar_sets for jar in resolve(name)]
    return settings.but(passed_on={**given, "spark.jars": ",".join(map(str, jars))})


COMMAND = Land()
