"""`scylla-cdc snapshot`: what is refused before anybody is asked anything."""

from __future__ import annotations

import argparse

import pytest

from connector.cli.output import ConsoleOutput
from connector.cli.snapshot import _signal
from connector.errors import UsageError
from tests.config.files import loaded


@pytest.mark.parametrize("given", ["", " ; ", "ALLOW FILTERING"])
def test_a_condition_that_says_nothing_is_not_the_whole_table(given: str) -> None:
    """As an empty variable of a shell: `--where "$CONDITION"`."""
    configuration = loaded(connector={"signal.enabled.channels": "kafka"})
    args = argparse.Namespace(action="start", table=None, where=given)
    with pytest.raises(UsageError, match=r"--where.*says nothing"):
        _signal(configuration, args, ConsoleOutput())
