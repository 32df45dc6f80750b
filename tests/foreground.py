"""Programs that hear what one at a terminal hears, however the tests themselves were started.

In: nothing; for `preexec_fn`. Shells let jobs in the background ignore Ctrl-C, and nohup the end of the terminal; both
is inherited.
"""

from __future__ import annotations

import signal


def as_in_the_foreground() -> None:
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
