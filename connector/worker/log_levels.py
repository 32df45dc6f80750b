"""Levels of loggers at run time, as log4j has them: a level is that of a logger and of all below it.

In: names and numbers. Out: what is logged from when on; what has changed.
"""

from __future__ import annotations

import logging
import time

ROOT = "root"
_MODIFIED: dict[str, int] = {}


def levels() -> dict[str, tuple[int, int | None]]:
    """Of all loggers that there are, in order: what is in force, and since when (in ms) if it was set here."""
    found = sorted(_existing().items())
    return {name: (logger.getEffectiveLevel(), _MODIFIED.get(name)) for name, logger in found}


def set_level(name: str, level: int) -> list[str]:
    """Those that log something else than before, in order."""
    logger = logging.getLogger() if name.lower() == ROOT else logging.getLogger(name)
    below = "" if logger.name == ROOT else f"{logger.name}."
    concerned = {each: found for each, found in _existing().items() if each.startswith(below)} | {logger.name: logger}
    before = {each: found.getEffectiveLevel() for each, found in concerned.items()}
    for each in concerned.values():
        if each.level != logging.NOTSET or each is logger:
            each.setLevel(level)
    changed = sorted(each for each, found in concerned.items() if found.getEffectiveLevel() != before[each])
    _MODIFIED.update(dict.fromkeys(changed, round(time.time() * 1000)))
    return changed


def _existing() -> dict[str, logging.Logger]:
    known = logging.getLogger().manager.loggerDict
    found = {name: each for name, each in list(known.items()) if isinstance(each, logging.Logger)}
    return {**found, ROOT: logging.getLogger()}
