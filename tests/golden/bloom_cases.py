"""Cases of the index codec `bloom`, FORMAT.md, 4.9 and 4.12."""

from reference import bloom

from golden.more_index_rejects import index_reject
from golden.value_accept_cases import floats as _floats
from golden.vectors import Fields

_PLACE = {"seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}
_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"
_EXAMPLE = "1008000000c000040058"
_EVERY_NINTH = " ".join(map(str, range(4, 900, 9)))
_PYBLOOM = "bloom(engine='pybloom')"
_PYBLOOM_EXAMPLE = "500591d739579e6d00"


def _written(why: str, settings: str, shape: str, positions: str) -> Fields:
    return {"why": why, "kind": "index", "settings": settings, **_PLACE, "shape": shape, "positions": positions}


def _example(policy: str, why: str) -> Fields:
    return _written(f"The example of FORMAT.md, 4.9: {why}.", f"bloom(policy='{policy}', fpr=0.3)", "1000", "3 4 260")


BLOOM_ACCEPTS: dict[str, Fields] = {
    "index_bloom_example": _example("p0", "all members"),
    "index_bloom_naive": _example("naive", "values are another matter, the bytes are those of leftmost"),
    "index_bloom_leftmost": _example("leftmost", "the first members"),
    "index_bloom_middle": _example("middle", "those in the middle"),
    "index_bloom_rightmost": _example("rightmost", "the last members"),
    "index_bloom_p1": _example("p1", "members at random"),
    "index_bloom_p2": _example("p2", "members by conflict sets"),
    "index_bloom_defaults": _written("Ten hashes.", "bloom", "10x100", "3 4 260"),
    "index_bloom_p2_rounds": _written("Sets of many sizes.", "bloom(policy='p2', fpr=0.2)", "900", _EVERY_NINTH),
    "index_bloom_p1_most": _written("More than half are kept.", "bloom(policy='p1', fpr=0.1)", "900", _EVERY_NINTH),
    "index_bloom_all_kept": _written("Nothing is left to report.", "bloom", "70", " ".join(map(str, range(70)))),
    "index_pybloom_example": _written("The example of FORMAT.md, 4.12: SHA-1.", _PYBLOOM, "1000", "3 4 260"),
    "index_pybloom_xxh": _written(
        "Few slices: XXH3.", "bloom(policy='rightmost', fpr=0.3, engine='pybloom')", "900", _EVERY_NINTH
    ),
    "index_pybloom_p2": _written(
        "SHA-256, and conflicts.", "bloom(policy='p2', fpr=7e-05, engine='pybloom')", "9000", _EVERY_NINTH
    ),
    "index_pybloom_sha512": _written("SHA-512.", "bloom('p0', 1e-9, 'pybloom')", "300", "7 9"),
    "frame_bloom": {
        "why": "A false positive has its value, too: four values for three kept.",
        "kind": "frame",
        "settings": "threshold(value=0.5)+bloom+raw+none",
        "shape": "400",
        "input": _floats(*(1.5 if i in (3, 4, 260) else i / 1024 for i in range(400))),
    },
}


def _refused(why: str, payload: str, message: str, error: str = _CORRUPT, kept: int = 3, numel: int = 1000) -> Fields:
    return index_reject("bloom", why, numel, kept, payload, error, message)


def _py_refused(why: str, payload: str, message: str, error: str = _CORRUPT) -> Fields:
    return index_reject(_PYBLOOM, why, 1000, 3, payload, error, message)


BLOOM_REJECTS: dict[str, Fields] = {
    "index_bloom_empty": _refused("No bytes.", "", "head", _TRUNCATED),
    "index_bloom_no_size": _refused("The head breaks off.", "10", "varint", _TRUNCATED),
    "index_bloom_no_hashes": _refused("No hash at all.", "00" + _EXAMPLE[2:], "0 hashes"),
    "index_bloom_policy": _refused("Policy 6.", "16" + _EXAMPLE[2:], "policy 6"),
    "index_bloom_size_zero": _refused("A filter of no bits.", "1000", "filter of 0 bits"),
    "index_bloom_size_small": _refused("Less than a block of positions.", "1007" + "00" * 7, "filter of 56 bits"),
    "index_bloom_size_large": _refused("65 bits for each kept.", "1019" + "01" * 25, "filter of 200 bits"),
    "index_bloom_size_huge": _refused("A filter of 4 GiB.", "10ffffffff0f00", "for 3 kept"),
    "index_bloom_size_not_shortest": _refused("8 in two bytes.", "108800" + _EXAMPLE[4:], "shortest form"),
    "index_bloom_size_too_long": _refused("Six bytes of a varint.", "10808080808001", "longer than"),
    "index_bloom_short": _refused("The example less a byte.", _EXAMPLE[:-2], "are needed", _TRUNCATED),
    "index_bloom_long": _refused("The example and a byte.", _EXAMPLE + "00", "left over"),
    "index_bloom_short_key": _refused("p1 with seven bytes of its key.", "1408" + "00" * 7, "are needed", _TRUNCATED),
    "index_bloom_too_full": _refused("Seven bits where three kept set six.", "1008010000c000040058", "7 bits are set"),
    "index_bloom_all_ones": _refused("A filter that reports everything.", "1008" + "ff" * 8, "64 bits are set"),
    "index_bloom_few_members": _refused("An empty filter reports nothing.", "1008" + "00" * 8, "reports 0 positions"),
    "index_bloom_kept_beyond_members": _refused(
        "The example reports ten positions.", _EXAMPLE, "reports 10 positions; kept is 11", kept=11
    ),
    "index_bloom_kept_beyond_numel": _refused("Three of two.", _EXAMPLE, "kept 3 is above numel 2", numel=2),
    "index_bloom_too_dense": _refused("Fewer bits than kept.", _EXAMPLE, "for 65 kept", kept=65),
    "index_bloom_most_hashes": _refused(
        "31 hashes, of which a bit is missing.",
        bloom.encode([3, 4], bloom.ALL, 31, 20).hex(),
        "reports 2 positions",
    ),
    "index_pybloom_empty": _py_refused("No bytes.", "", "head", _TRUNCATED),
    "index_pybloom_size_zero": _py_refused("Slices of no bits.", "5000", "filter of 0 bits"),
    "index_pybloom_short": _py_refused("The example less a byte.", _PYBLOOM_EXAMPLE[:-2], "are needed", _TRUNCATED),
    "index_pybloom_padding": _py_refused("A bit beyond 50.", _PYBLOOM_EXAMPLE[:-2] + "04", "beyond the 50"),
    "index_pybloom_few_members": _py_refused("An empty filter.", "5005" + "00" * 7, "reports 0 positions"),
}
