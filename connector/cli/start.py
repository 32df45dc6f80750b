"""`scylla-cdc`: signals are heeded before anything else is loaded, which takes a second on a busy machine.

In: the command line. Out: what `main.py` makes of it.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from connector.cli.early_signals import heed_signals
from connector.cli.open_files import allow_all_files
from connector.cli.quick_imports import quick_imports
from connector.own_python import keep_apart


def main() -> NoReturn:
    heed_signals(sys.argv[1:])
    keep_apart()
    allow_all_files()
    # Whoever uses pydantic may have plugins for it. Ours are none of their models, and to look for them takes longer
    # than to make these; so in all processes that this one starts.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with quick_imports():
        from connector.cli.main import main as of_commands
    of_commands()
