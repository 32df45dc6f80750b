"""Stream ids: what their 16 bytes mean, and which shard of a node a token belongs to.

Comes in: tokens, vnode indexes, a random source. Goes out: ids as the raw bytes that `cdc$stream_id` holds.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from embedded.scylla.tokens import cdc_token

#: ScyllaDB's default: the twelve most significant token bits do not decide the shard.
IGNORE_MSB = 12
VERSION = 1

_ID = Struct(">qQ")
_MASK = (1 << 64) - 1


def stream_id(token: int, index: int, random_bits: Callable[[int], int]) -> bytes:
    """Token (64 bits), random (38), vnode index (22, always 0 for tablets), version (4)."""
    return _ID.pack(token, random_bits(38) << 26 | (index & 0x3FFFFF) << 4 | VERSION)


def stream_order(raw: bytes) -> tuple[int, bytes]:
    """Order of a full scan: signed token, then the bytes of the key."""
    return cdc_token(raw), raw


def shard_of(token: int, shards: int, ignore_msb: int = IGNORE_MSB) -> int:
    unsigned = ((token + (1 << 63)) << ignore_msb) & _MASK
    return unsigned * shards >> 64


def first_token_of_shard(after: int, shard: int, shards: int, ignore_msb: int = IGNORE_MSB) -> int | None:
    """The first token greater than `after` that belongs to the shard; None if there is none up to the
    greatest."""
    unsigned = after + 1 + (1 << 63)
    if unsigned > _MASK:
        return None
    if shard_of(unsigned - (1 << 63), shards, ignore_msb) == shard:
        return unsigned - (1 << 63)
    # Shards repeat in blocks of 2^(64-ignore_msb) tokens; within a block the shard grows with the token.
    block_bits = 64 - ignore_msb
    offset = -(-(shard << block_bits) // shards)
    block = unsigned >> block_bits
    start = (block << block_bits) + offset
    if start < unsigned:
        start += 1 << block_bits
    return start - (1 << 63) if start <= _MASK else None
