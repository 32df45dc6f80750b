"""The Spark half of `scylla-cdc demo`, in a process of its own: `python -m embedded.demo.landing FOLDER`.

In: a folder with `landing.json`. It starts Spark at once, while rows are still written, waits for the file `land.now`,
lands, compares the landed tables with their source, and writes both to `landed.json`, complete or not at all: if Spark
does not get that far, the status is 1 and there is no such file.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from connector.errors import CdcError
from connector.secrets import scrub

_LOOK_SECONDS = 0.1


def main(folder: Path) -> int:
    from connector.cli.land import with_jars
    from connector.cli.source_options import configured_access
    from embedded.demo.comparison import plain
    from spark_jobs.config import load_settings
    from spark_jobs.land import land
    from spark_jobs.session import needing_spark, start_session
    from spark_jobs.stream import Progress
    from spark_jobs.tables import FEW_ROWS, register_landed
    from spark_jobs.verify import total, verify

    # Spark hands timestamps over as local time.
    os.environ["TZ"] = "UTC"
    time.tzset()
    settings = with_jars(load_settings(folder / "landing.json"))
    # Into this process's log file, for whoever looks why Spark ended. `landing.json` does not say that rows are few:
    # who takes that for a start has more of them.
    session = start_session({**settings.session_config(), **FEW_ROWS, "log.level": "ERROR"})
    session.range(1).collect()
    pause = threading.Event()
    while not (folder / "land.now").exists():
        pause.wait(_LOOK_SECONDS)
    began = time.monotonic()
    progress = Progress()
    status = land(settings, True, progress, session=session)
    landed_after = time.monotonic() - began
    rows: dict[str, list[Any]] = {}
    with needing_spark(session):
        register_landed(session, settings.session_config())
        for table in settings.tables:
            rows[str(table)] = [plain(row) for row in session.table(str(table)).collect()]
    began = time.monotonic()
    access = configured_access(settings)
    assert access is not None, "landing.json has the source's address"
    with needing_spark(session):
        verdicts = verify(session, settings, access)
    if problems := [verdict.problem for verdict in verdicts if verdict.problem]:
        print(*map(scrub, problems), sep="\n", file=sys.stderr)
        return 1
    value = {
        "status": status,
        "seconds": landed_after,
        "progress": progress.summary(),
        "rows": rows,
        "compared_seconds": time.monotonic() - began,
        "differences": total(verdicts),
        "details": [line.strip() for verdict in verdicts if verdict.differences for line in verdict.lines()],
    }
    fresh = folder / "landed.json.new"
    fresh.write_text(json.dumps(value))
    fresh.replace(folder / "landed.json")
    session.stop()
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])))
    except CdcError as error:
        sys.exit(scrub(str(error)))
