"""`python -m spark_jobs.jvm`: fetches Java and jars, for set-up and images.

In: ``jars [SET]...`` (all without a name), ``java``, or ``lock`` (pins all sets anew). Out: files in the cache.
"""

from __future__ import annotations

import sys

from connector.errors import EmbeddedError
from spark_jobs.jvm import jars, jars_lock, java


def main(arguments: list[str]) -> None:
    match arguments:
        case ["jars", *wanted]:
            for name in wanted or jars.names():
                jars.resolve(name)
        case ["java"]:
            java.link_spark_home()
        case ["lock"]:
            jars_lock.pin_all()
        case _:
            sys.exit(f"usage: python -m spark_jobs.jvm jars [{' | '.join(jars.names())}]... | java | lock")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except EmbeddedError as error:
        sys.exit(f"error: {error}")
