"""Levels of loggers of this process, under log4j's names.

Out: what ``/admin/loggers`` shows.
"""

from __future__ import annotations

import logging
from typing import Any

ROOT = "root"
_NAMES = {logging.CRITICAL: "FATAL", logging.ERROR: "ERROR", logging.WARNING: "WARN", logging.INFO: "INFO"}


def levels() -> dict[str, dict[str, Any]]:
    """Of the loggers that have one of their own."""
    own = {name: logger for name, logger in _existing().items() if logger.level != logging.NOTSET}
    return {name: _level(logger) for name, logger in sorted({**own, ROOT: logging.getLogger()}.items())}


def level_of(name: str) -> dict[str, Any] | None:
    """The level in force; None where there is no such logger."""
    logger = logging.getLogger() if name.lower() == ROOT else _existing().get(name)
    return None if logger is None else _level(logger)


def _existing() -> dict[str, logging.Logger]:
    known = logging.getLogger().manager.loggerDict
    return {name: each for name, each in list(known.items()) if isinstance(each, logging.Logger)}


def _level(logger: logging.Logger) -> dict[str, Any]:
    level = logger.getEffectiveLevel()
    named = next((name for number, name in _NAMES.items() if level >= number), "DEBUG" if level >= 10 else "TRACE")
    return {"level": named, "last_modified": None}
