"""Whole numbers on the command line, in any script and of any length."""

from __future__ import annotations

import argparse

import pytest

from connector.cli.numbers import count, port, positive

ODD = ["", "-", "²", "٣", "1_000", " 1", "+1", "1.0", "0x1", "9" * 5_000, "-" + "9" * 5_000]


@pytest.mark.parametrize("text", [*ODD, "-1", "0"])
def test_what_is_no_number_of_one_or_more_is_said_in_a_line(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        positive(text)
    assert str(caught.value).endswith("is not a number of 1 or more") and len(str(caught.value)) < 90


def test_bounds_are_in_it() -> None:
    assert (positive("1"), count("0"), port("65535")) == (1, 0, 65535)
    for text in (*ODD, "65536", "-1"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a port number from 0 to 65535"):
            port(text)
