"""A user that is a number only, as containers are run (`docker run --user`, OpenShift): Java and Hadoop ask for a name.

In: who runs this process. Out: where Java finds a home, for the moment in which a JVM is started; the login of a JVM
that runs, without which Hadoop's code ends with a `NullPointerException`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import tempfile
from collections.abc import Iterator
from typing import Any

# What Spark's scripts add to the options of the JVM that they start; a notice is printed for others.
_OPTIONS = "SPARK_SUBMIT_OPTS"
_NAMES = ("HADOOP_USER_NAME", "SPARK_USER", "USER", "LOGNAME")


def is_nameless() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return True
    return False


@contextlib.contextmanager
def with_home() -> Iterator[None]:
    """Java takes the home from the list of users alone, and `?`, which is no folder, where it has none."""
    if not is_nameless():
        yield
        return
    before = os.environ.get(_OPTIONS)
    # The last of two counts: what somebody gave stays as it is.
    os.environ[_OPTIONS] = f"{shlex.quote(f'-Duser.home={_home()}')} {before or ''}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


def log_in(jvm: Any) -> None:
    """Tells a JVM without a context who it is, unless it can find out by itself."""
    if is_nameless():
        users = jvm.org.apache.hadoop.security.UserGroupInformation
        users.setLoginUser(users.createRemoteUser(_name()))


def _home() -> str:
    given = os.environ.get("HOME", "")
    return given if given and os.access(given, os.W_OK) else tempfile.gettempdir()


def _name() -> str:
    return next(filter(None, map(os.environ.get, _NAMES)), str(os.getuid()))
