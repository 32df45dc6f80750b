"""Java, and the jars that Spark and the embedded Kafka broker run: found on the machine, or fetched once and pinned.

In: names of jar sets in ``jars.lock``. Out: paths of whole, checked jars, a Java 17 or 21, and the archive of classes
that Spark starts from. ``python -m spark_jobs.jvm`` fetches.
"""

from __future__ import annotations

from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.jars import jar_set, resolve
from spark_jobs.jvm.java import ENVIRONMENT, Java, find_java
from spark_jobs.jvm.nameless import log_in, with_home
from spark_jobs.jvm.spark_classes import archive_path, tell_refusal, with_archive, with_class_path

__all__ = [
    "ENVIRONMENT",
    "Java",
    "archive_path",
    "cache_dir",
    "find_java",
    "jar_set",
    "log_in",
    "resolve",
    "tell_refusal",
    "with_archive",
    "with_class_path",
    "with_home",
]
