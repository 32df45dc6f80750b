"""`scylla-cdc`: signals are heeded before anything else is loaded, which takes a second on a busy machine.

In: the command line. Out: what `main.py` makes of it.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from connector.cli.early_signals import heed_signals
from connector.own_python import keep_apart


def main() -> NoReturn:
    heed_signals(sys.argv[1:])
    keep_apart()
    from connector.cli.main import main as of_commands

    of_commands()
