"""Bloom filters of positions; FORMAT.md, 4.9 and 4.12. `sliced` stands for 4.12."""

import hashlib
from collections.abc import Callable
from functools import cache, lru_cache, reduce
from math import log
from operator import or_

from reference.bits import ByteReader, CorruptError, TruncatedError, varint
from reference.randomness import draw
from reference.shared_support import support

ALL, FIRST, MIDDLE, LAST, RANDOM, CONFLICTS = range(6)
KEYED = (RANDOM, CONFLICTS)
Hashing = Callable[[int], list[int]]


@cache
def _draw(index: int) -> int:
    return draw(0, index)


def native_hashing(hashes: int, size: int) -> Hashing:
    """The bits of a position in a filter of so many bytes."""
    bits = 8 * size

    def places(position: int) -> list[int]:
        block, offset = divmod(position, 64)
        return [(_draw(32 * block + i) * bits // 2**64 + offset) % bits for i in range(hashes)]

    return places


def _digest_name(bits: int) -> str:
    for most, name in ((128, "xxh3_128"), (160, "sha1"), (256, "sha256"), (384, "sha384")):
        if bits <= most:
            return name
    return "sha512"


def _new(name: str, data: bytes) -> bytes:
    if name == "xxh3_128":
        import xxhash

        return xxhash.xxh3_128_digest(data)
    return hashlib.new(name, data).digest()


def sliced_hashing(slices: int, size: int) -> Hashing:
    """The bits of a position, one in each of the slices of `size` bits."""
    width = 8 if size >= 2**31 else 4 if size >= 2**15 else 2
    name = _digest_name(8 * slices * width)

    def places(position: int) -> list[int]:
        numbers: list[int] = []
        while len(numbers) < slices:
            salt = _new(name, (len(numbers) // (len(_new(name, b"")) // width)).to_bytes(4, "little"))
            digest = _new(name, salt + str(position).encode())
            numbers += [int.from_bytes(digest[at : at + width], "little") for at in range(0, len(digest), width)]
        return [i * size + number % size for i, number in enumerate(numbers[:slices])]

    return places


def _hashing(hashes: int, size: int, sliced: bool) -> Hashing:
    return sliced_hashing(hashes, size) if sliced else native_hashing(hashes, size)


def _number_of_bits(hashes: int, size: int, sliced: bool) -> int:
    return hashes * size if sliced else 8 * size


def encode(positions: list[int], policy: int, hashes: int, size: int, key: int = 0, sliced: bool = False) -> bytes:
    """Refuses nothing."""
    if not positions:
        return b""
    filter_bytes = bytearray(-(-_number_of_bits(hashes, size, sliced) // 8))
    hashing = _hashing(hashes, size, sliced)
    for position in positions:
        for place in hashing(position):
            filter_bytes[place // 8] |= 1 << (place % 8)
    head = bytes([policy + 8 * hashes]) + varint(size) + (key.to_bytes(8, "little") if policy in KEYED else b"")
    return head + bytes(filter_bytes)


def decode(payload: bytes, kept: int, numel: int, sliced: bool = False) -> list[int]:
    if kept == 0 and not payload:
        return []
    if kept > numel:
        raise CorruptError("bloom: more kept than there are")
    reader = ByteReader(payload)
    hashes, policy = divmod(reader.uint(1), 8)
    if hashes == 0 or policy > CONFLICTS:
        raise CorruptError("bloom: a policy or number of hashes that is not allowed")
    size = _short_varint(reader)
    bits = _number_of_bits(hashes, size, sliced)
    if not max(kept, hashes if sliced else 64) <= bits <= 64 * kept:
        raise CorruptError("bloom: a filter of a size that is not allowed")
    key = reader.uint(8) if policy in KEYED else 0
    filter_bytes = reader.take(-(-bits // 8))
    reader.end()
    if bits % 8 and filter_bytes[-1] >> bits % 8:
        raise CorruptError("bloom: bits beyond the filter")
    if int.from_bytes(filter_bytes, "little").bit_count() > hashes * kept:
        raise CorruptError("bloom: more bits than are set by so many")
    filter_bits = int.from_bytes(filter_bytes, "little")
    members = [p for p, own in enumerate(_bits_of_all(hashes, size, sliced, numel)) if filter_bits & own == own]
    if len(members) < kept:
        raise CorruptError("bloom: fewer members than kept")
    return _chosen(members, policy, kept, key, _hashing(hashes, size, sliced))


@lru_cache(maxsize=16)
def _bits_of_all(hashes: int, size: int, sliced: bool, numel: int) -> list[int]:
    """Of every position, its bits as an integer; kept, for many filters of one size are read."""
    hashing = _hashing(hashes, size, sliced)
    return [reduce(or_, (1 << place for place in hashing(position))) for position in range(numel)]


def _short_varint(reader: ByteReader) -> int:
    """Of five bytes at most."""
    start = reader.place
    length = next((i for i, byte in enumerate(reader.data[start : start + 5]) if byte < 0x80), None)
    if length is None:
        short = reader.left < 5
        raise (TruncatedError if short else CorruptError)("bloom: a size that breaks off, or is too long")
    return reader.varint()


def _chosen(members: list[int], policy: int, kept: int, key: int, hashing: Hashing) -> list[int]:
    extra = len(members) - kept
    if policy == RANDOM:
        return [members[place] for place in support(key, len(members), kept)]
    if policy == CONFLICTS:
        return _by_conflicts(members, kept, key, hashing)
    skipped = {ALL: 0, FIRST: 0, MIDDLE: extra // 2, LAST: extra}[policy]
    return members[skipped:] if policy == ALL else members[skipped : skipped + kept]


def _by_conflicts(members: list[int], kept: int, key: int, hashing: Hashing) -> list[int]:
    sets: dict[int, list[int]] = {}
    for member in members:
        for place in set(hashing(member)):
            sets.setdefault(place, []).append(member)
    in_order = [sets[place] for place in sorted(sets, key=lambda place: (len(sets[place]), place))]
    taken: list[int] = []
    while True:
        for owners in in_order:
            if len(taken) == kept:
                return sorted(taken)
            left = [owner for owner in owners if owner not in taken]
            if left:
                taken.append(left[draw(key, len(taken)) * len(left) // 2**64])


def bits_per_kept(fpr: float) -> float:
    """The formula of FORMAT.md, 4.9."""
    hashes = next(k for k in range(1, 32) if 2.0**-k <= fpr)
    return -hashes / log(1 - fpr ** (1 / hashes))
