"""How many files a process may have open: as many as its system lets it, not as many as shells are given.

In, out: nothing. Clients of Kafka have some files for each broker, and each worker a connection to each shard of each
node. Of the 1,024 that shells and containers begin with, ten nodes of a hundred shards leave none: what cannot be
connected to is tried again for ever, and looks like servers that are away. Java takes all that it may have by itself.
"""

from __future__ import annotations

import contextlib
import resource


def allow_all_files() -> None:
    """For this process, and those that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Systems without a limit may have one nevertheless, which they do not tell.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
