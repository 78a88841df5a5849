"""Checksums of a saved vocabulary, so that tests of damage reach the checks behind the checksum."""

from __future__ import annotations

import struct

MASK = (1 << 64) - 1


def mix(h: int, v: int) -> int:
    h ^= (v + 0x9E3779B97F4A7C15 + (h << 6) + (h >> 2)) & MASK
    h = (h * 0xFF51AFD7ED558CCD) & MASK
    return h ^ (h >> 32)


def checksum(data: bytes) -> int:
    """Returns the checksum of the file format, implemented a second time."""
    lanes = [1, 2, 3, 4]
    whole = len(data) // 32 * 32
    for i, word in enumerate(struct.unpack(f"<{whole // 8}Q", data[:whole])):
        lane = ((lanes[i % 4] ^ word) * 0x9E3779B97F4A7C15) & MASK
        lanes[i % 4] = lane ^ (lane >> 29)
    rest = data[whole:]
    h = mix(len(data), len(rest))
    while len(rest) >= 8:
        h = mix(h, int.from_bytes(rest[:8], "little"))
        rest = rest[8:]
    h = mix(h, int.from_bytes(rest, "little"))
    for lane in lanes:
        h = mix(h, lane)
    return h


def signed(data: bytearray) -> bytes:
    """`data` with matching checksums."""
    end = 24 + 11 * 16
    size = end + 24
    data[end : end + 8] = struct.pack("<Q", len(data))
    data[end + 8 : end + 16] = struct.pack("<Q", checksum(bytes(data[size:])))
    data[end + 16 : end + 24] = struct.pack("<Q", checksum(bytes(data[: end + 16])))
    return bytes(data)
