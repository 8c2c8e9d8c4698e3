"""Cases of `auto`, FORMAT.md, 4.14. Which id is chosen is the encoder's affair, so most are read only."""

from golden.more_index_rejects import index_reject
from golden.vectors import Fields

_CORRUPT, _TRUNCATED = "CorruptPayloadError", "TruncatedPayloadError"
_AUTO = {"kind": "index", "settings": "auto"}

AUTO_ACCEPTS: dict[str, Fields] = {
    "index_auto_example": {
        "why": "The example of FORMAT.md, 4.14: rice and delta both take 4 bytes.",
        **_AUTO,
        "shape": "1000",
        "positions": "3 4 260",
        "payload": "043000e203",
    },
    "index_auto_bitmap": {"why": "Half of all were kept.", **_AUTO, "shape": "8", "positions": "0 2 5 7"},
    "index_auto_runs": {
        "why": "Two bytes of rle for 200 neighbours.",
        **_AUTO,
        "shape": "300",
        "positions": " ".join(map(str, range(50, 250))),
    },
    **{
        f"index_auto_id_{payload[:2]}": {
            "why": "Any of the ids will do, whatever our encoder would choose.",
            **_AUTO,
            "written": "no",
            "shape": "10x100",
            "positions": "3 4 260",
            "payload": payload,
        }
        for payload in ("01030000000400000004010000", "05" + "0301fe0100", "08" + "0300ff01", "0a" + "003000e203")
    },
}

AUTO_REJECTS: dict[str, Fields] = {
    "index_auto_empty": index_reject("auto", "No id.", 1000, 1, "", _TRUNCATED, "auto"),
    "index_auto_no_payload": index_reject("auto", "An id alone.", 1000, 1, "04", _TRUNCATED, "rice"),
    "index_auto_long": index_reject("auto", "The example and a byte.", 1000, 3, "043000e20300", _CORRUPT, "left over"),
    "index_auto_of_itself": index_reject(
        "auto", "auto within auto.", 1000, 3, "0e043000e203", "UnknownCodecError", "id 14; allowed are"
    ),
    "index_auto_lossy": index_reject("auto", "An id that is not exact.", 1000, 3, "0900", "UnknownCodecError", "id 9"),
    "index_auto_other_bytes": index_reject("auto", "The example as raw.", 1000, 3, "013000e203", _TRUNCATED, "raw"),
    "index_auto_nothing_kept": index_reject("auto", "An id for no positions.", 1000, 0, "04", _CORRUPT, "left over"),
}
