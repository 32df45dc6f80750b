"""How Python reaches what lives in Spark's JVM: classes by their full names, elements of lists, files.

In: a session, or an object of the JVM. Out: a class, a list, a text. Spelled as ``jvm.org.apache.…``, each part of
a name is looked for as a class, under a dozen packages, in some hundred jars; and the exception that ends a loop over a
Java collection is compared with a dozen classes in the same way. Landing small tables, a driver did that for an eighth
of its time.
"""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_found: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def java_class(session: SparkSession, name: str) -> Any:
    """A class by its full name, which is asked for once in each JVM."""
    jvm: Any = session._jvm
    classes = _found.setdefault(jvm, {})
    if name not in classes:
        classes[name] = getattr(jvm, name)
    return classes[name]


def elements(listed: Any) -> list[Any]:
    """Of a ``java.util.List``."""
    return [listed.get(at) for at in range(listed.size())]


def hadoop_path(session: SparkSession, path: str) -> Any:
    return java_class(session, "org.apache.hadoop.fs.Path")(path)


def file_system(session: SparkSession, path: Any) -> Any:
    """The file system that a path is on."""
    return path.getFileSystem(session._jsc.hadoopConfiguration())


def file_text(session: SparkSession, path: Any) -> str:
    stream = file_system(session, path).open(path)
    try:
        return str(java_class(session, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
    finally:
        stream.close()


def resolved(session: SparkSession, folder: str) -> str | None:
    """Where a folder is, however it is spelled: by a link, a mount or another name of its cluster; None where it is
    not."""
    path = hadoop_path(session, folder)
    system = file_system(session, path)
    if not system.exists(path):
        return None
    found = str(system.resolvePath(path).toUri().getPath())
    return os.path.realpath(found) if system.getUri().getScheme() == "file" else found
