"""Numbers of any length keep every digit, and long ones take seconds rather than minutes."""

from __future__ import annotations

import random
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.values.big_numbers import decimal_of, scaled, whole_number
from connector.values.binary import decode, encode
from connector.values.rendering import renderer
from connector.values.types import native


@given(st.integers(0, 40_000), st.integers(-3, 3), st.booleans(), st.randoms(use_true_random=False))
def test_every_digit_is_kept(bits: int, near: int, power: bool, draw: random.Random) -> None:
    value = ((1 << bits) if power else draw.getrandbits(bits)) + near
    assert decimal_of(value) == Decimal(value)
    assert whole_number(str(Decimal(value))) == value


@given(st.integers(-(10**30), 10**30), st.integers(-(2**31), 2**31 - 1))
def test_scales_leave_the_digits_alone(unscaled: int, scale: int) -> None:
    sign, digits, _ = Decimal(unscaled).as_tuple()
    assert str(scaled(unscaled, scale)) == str(Decimal((sign, digits, -scale)))


@pytest.mark.parametrize("text", ["", "-", "1.5", "²", "٣", "1_000", " 1", "1e5", "1" * 5000 + "x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_number(text)


def test_a_number_of_300_kb_takes_no_squared_time() -> None:
    raw = b"\x01" + random.Random(7).randbytes(300_000)
    began = time.thread_time()
    text = renderer(native("varint"))(raw)
    assert renderer(native("decimal"))(bytes(4) + raw) == text
    assert encode(native("varint"), whole_number(text)) == raw
    assert encode(native("decimal"), decode(native("decimal"), b"\x00\x00\x00\x07" + raw))[4:] == raw
    # Python's own conversions take 9 s for each of these.
    assert time.thread_time() - began < 9
