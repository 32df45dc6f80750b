"""Tokens: where a partition key lies on the ring.

In: a serialised partition key. Out: a signed 64-bit token, as Murmur3Partitioner or ScyllaDB's CDC
partitioner gives it. Cassandra's Murmur3 reads the tail bytes as signed Java bytes and so differs from the
published function there.
"""

from __future__ import annotations

from collections.abc import Callable

Partitioner = Callable[[bytes], int]
MIN_TOKEN = -(1 << 63)
MAX_TOKEN = (1 << 63) - 1
_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


def _final_mix(value: int) -> int:
    value ^= value >> 33
    value = (value * 0xFF51AFD7ED558CCD) & _MASK
    value ^= value >> 33
    value = (value * 0xC4CEB9FE1A85EC53) & _MASK
    return value ^ (value >> 33)


def _tail(data: bytes) -> int:
    """Up to eight bytes, little-endian, each extended with its sign and xor-ed into place."""
    value = 0
    for index, byte in enumerate(data):
        value ^= (byte if byte < 128 else byte - 256) << (8 * index)
    return value & _MASK


def murmur3_token(key: bytes) -> int:
    """Murmur3 (128 bits, x64, the first half) of the key; the least number is never a key's token."""
    length = len(key)
    first = second = 0
    full = length & ~15
    for at in range(0, full, 16):
        block = (int.from_bytes(key[at : at + 8], "little") * _C1) & _MASK
        first ^= (((block << 31) | (block >> 33)) * _C2) & _MASK
        first = ((((first << 27) | (first >> 37)) & _MASK) + second) & _MASK
        first = (first * 5 + 0x52DCE729) & _MASK
        block = (int.from_bytes(key[at + 8 : at + 16], "little") * _C2) & _MASK
        second ^= (((block << 33) | (block >> 31)) * _C1) & _MASK
        second = ((((second << 31) | (second >> 33)) & _MASK) + first) & _MASK
        second = (second * 5 + 0x38495AB5) & _MASK
    rest = key[full:]
    if len(rest) > 8:
        block = (_tail(rest[8:]) * _C2) & _MASK
        second ^= (((block << 33) | (block >> 31)) * _C1) & _MASK
    if rest:
        block = (_tail(rest[:8]) * _C1) & _MASK
        first ^= (((block << 31) | (block >> 33)) * _C2) & _MASK
    first ^= length
    second ^= length
    first = (first + second) & _MASK
    second = (second + first) & _MASK
    first = (_final_mix(first) + _final_mix(second)) & _MASK
    token = first - (1 << 64) if first >> 63 else first
    return MAX_TOKEN if token == MIN_TOKEN else token


def cdc_token(key: bytes) -> int:
    """The first eight bytes of a stream id; a key that is no stream id gets the least token."""
    return int.from_bytes(key[:8], "big", signed=True) if len(key) == 16 else MIN_TOKEN
