"""Spark for a command that takes long with it, and says what it does.

In: where it is said, and what to start Spark with. Out: a session, and the narration that tells how far its tasks are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from connector.cli.narration import Narration
from connector.cli.output import Output

if TYPE_CHECKING:
    from spark_jobs.config import Settings
    from spark_jobs.session import SparkSession


@contextmanager
def narrated_spark(output: Output, settings: Settings) -> Iterator[tuple[SparkSession, Narration]]:
    """Within it, that Spark has ended is the error."""
    from spark_jobs.session import needing_spark, start_session, tasks_done

    with Narration(output) as narration:
        narration.say("Starting Spark …")
        session = start_session(settings.session_config())
        narration.details = lambda: tasks_done(session)
        with needing_spark(session):
            yield session, narration
