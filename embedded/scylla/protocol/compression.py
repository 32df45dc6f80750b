"""Frame body compression as clients negotiate it in STARTUP: `lz4` and `snappy`.

In: a body and the algorithm's name. Out: the body packed or unpacked; `BadCompression` where bytes are not what they
claim to be. The codec library is imported on first use, so that a server nobody asks for compression starts without it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from embedded.scylla.protocol.frame import MAX_BODY_LENGTH

ALGORITHMS: Final = ("lz4", "snappy")
_LENGTH: Final = Struct(">I")


class BadCompression(ValueError):
    """The bytes are not a body compressed with the agreed algorithm."""


def compress_lz4(body: bytes) -> bytes:
    from cramjam import lz4

    return _LENGTH.pack(len(body)) + bytes(lz4.compress_block(body, store_size=False))


def decompress_lz4(packed: bytes) -> bytes:
    """CQL puts the unpacked length first, big-endian, unlike every other user of LZ4 blocks."""
    from cramjam import lz4

    if len(packed) < _LENGTH.size:
        raise BadCompression("lz4 body without its length")
    (length,) = _LENGTH.unpack_from(packed)
    if length == 0:
        return b""
    if length > MAX_BODY_LENGTH:
        raise BadCompression(f"lz4 body claims {length} bytes")
    # A block grows by at most 255 bytes per byte; a larger claim is a trap to make us reserve memory.
    if length > 255 * (len(packed) - _LENGTH.size) + 64:
        raise BadCompression(f"lz4 body of {len(packed)} bytes claims {length} bytes")
    try:
        body = bytes(lz4.decompress_block(packed[_LENGTH.size :], output_len=length))
    except Exception as error:
        raise BadCompression(f"lz4 body cannot be unpacked: {error}") from error
    if len(body) != length:
        raise BadCompression(f"lz4 body of {len(body)} bytes claims {length} bytes")
    return body


def compress_snappy(body: bytes) -> bytes:
    from cramjam import snappy

    return bytes(snappy.compress_raw(body))


def decompress_snappy(packed: bytes) -> bytes:
    from cramjam import snappy

    try:
        length = snappy.decompress_raw_len(packed)
        if length > MAX_BODY_LENGTH or length > 64 * len(packed) + 64:
            raise BadCompression(f"snappy body of {len(packed)} bytes claims {length} bytes")
        return bytes(snappy.decompress_raw(packed))
    except BadCompression:
        raise
    except Exception as error:
        raise BadCompression(f"snappy body cannot be unpacked: {error}") from error


COMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {"lz4": compress_lz4, "snappy": compress_snappy}
DECOMPRESSORS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "lz4": decompress_lz4,
    "snappy": decompress_snappy,
}
