"""Test modules as pytest changes them before they are imported, so that assertions explain themselves.

In: a run of several processes, each of which collects all tests. Out: the changed modules where pytest looks for them,
made by one process each: by themselves, all would make all of them at the same time, for half of what collecting takes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from unittest.mock import patch

import pytest
from _pytest.assertion import rewrite

TESTS = Path(__file__).resolve().parent


def rewrite_a_share(config: pytest.Config) -> None:
    """What this process makes for all. To what others make it comes while it collects: it is there by then."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    hook = config.pluginmanager.rewrite_hook
    if processes == 1 or sys.dont_write_bytecode or not isinstance(hook, rewrite.AssertionRewritingHook):
        return
    own = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    # pytest's own loader keeps what it has made before it runs it, which is for those who import the module.
    with patch.object(rewrite, "exec", lambda code, names: None, create=True):
        for path in _modules(config)[own::processes]:
            spec = spec_from_file_location(f"rewritten {path}", path, loader=hook)
            assert spec is not None
            # Whoever collects it says what is wrong with it.
            with contextlib.suppress(Exception):
                hook.exec_module(module_from_spec(spec))


def _modules(config: pytest.Config) -> list[Path]:
    """All that may be collected, in the order in which it is."""
    given = [(config.invocation_params.dir / each.split("::", 1)[0]).resolve() for each in config.args]
    found = TESTS.rglob("test_*.py")
    return sorted(path for path in found if any(path.is_relative_to(each) for each in given))
