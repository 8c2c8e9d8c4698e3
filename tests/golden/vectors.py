"""The text form of golden vectors, and what a case of each kind means."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.errors import RemoteRankError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS, VALUE_CODECS
from hvd_deepreduce.rows.merge import Rows, table_of
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.settings import Settings, stage_of
from hvd_deepreduce.sparse import MatrixView, Support, TensorSpec
from hvd_deepreduce.wire.bundle import BundleHeader, require_padding, split_bundles
from hvd_deepreduce.wire.reader import ByteReader

FOLDER = Path(__file__).resolve().parent
Fields = Mapping[str, str]


def read(path: Path) -> dict[str, str]:
    return read_text(path.read_text(encoding="utf-8"))


def read_text(text: str) -> dict[str, str]:
    """The fields of a file, comments and line ends gone."""
    fields: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        line = line.split("  #")[0].rstrip()
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            key, _, line = line.partition(":")
            assert key not in fields, f"{key} is there twice"
            fields[key] = ""
        fields[key] = f"{fields[key]} {line.strip()}".strip()
    return fields


def write(fields: Fields) -> str:
    """The text of a case; a few floats stand on lines of their own and are told in decimal too."""
    lines = []
    for key, value in fields.items():
        words = value.split()
        if key in ("input", "decoded") and 0 < len(words) <= 8 and value != "not finite":
            dtype = np.dtype(f"<f{len(words[0]) // 2}")
            decimals = [np.frombuffer(bytes.fromhex(word), dtype)[0] for word in words]
            lines += [f"{key}:", *(f"  {word}  # {number!r}" for word, number in zip(words, decimals, strict=True))]
        else:
            text = f"{key}: {' '.join(_wrapped(value))}"
            lines += textwrap.wrap(text, 110, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _wrapped(value: str) -> list[str]:
    """Long hex in groups, so that it can be wrapped."""
    return [word if len(word) <= 96 else spaced(bytes.fromhex(word), 8) for word in value.split()]


def spaced(data: bytes, group: int) -> str:
    """Hex in groups of so many bytes."""
    return " ".join(data[start : start + group].hex() for start in range(0, len(data), group))


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


@dataclass(frozen=True)
class Place:
    """What the fields say that are the same for all kinds."""

    spec: TensorSpec
    draw: Draw

    @classmethod
    def of(cls, fields: Fields) -> "Place":
        name = fields.get("tensor", "layer")
        shape = tuple(int(size) for size in fields.get("shape", "1").split("x"))
        seed, step, rank = (int(fields.get(key, "0")) for key in ("seed", "step", "rank"))
        return cls(TensorSpec(name, shape, fields.get("dtype", "float32")), Draw(seed, name, step, rank))

    @property
    def view(self) -> MatrixView:
        return self.spec.view

    def values(self, text: str) -> np.ndarray:
        return np.frombuffer(bytes.fromhex(text), self.spec.value_dtype.newbyteorder("<")).astype(self.spec.value_dtype)

    def text(self, values: np.ndarray) -> str:
        return spaced(values.astype(values.dtype.newbyteorder("<")).tobytes(), values.dtype.itemsize)

    def support(self, kept: int) -> Support:
        """Some support, for value codecs that look at nothing but its size."""
        view = MatrixView(1, max(kept, 1))
        return Support(np.arange(kept, dtype=view.position_dtype), view)


# --- per kind: what encoding adds to a case, and what decoding its bytes gives ---


def _encode_index(fields: Fields) -> dict[str, str]:
    place = Place.of(fields)
    codec = stage_of("index", INDEX_CODECS, fields["settings"])
    support = Support.checked(numbers(fields["positions"]), place.view)
    return {"payload": codec.encode(support, place.draw).hex()}


def _decode_index(fields: Fields) -> dict[str, str]:
    place = Place.of(fields)
    codec = stage_of("index", INDEX_CODECS, fields["settings"])
    kept = int(fields["kept"]) if "kept" in fields else len(fields["positions"].split())
    decoded = codec.decode(bytes.fromhex(fields["payload"]), kept, place.view, place.draw)
    return {"positions" if codec.exact else "received": " ".join(map(str, decoded.positions))}


def _encode_ordered(fields: Fields) -> dict[str, str]:
    place = Place.of(fields)
    sent = np.array(numbers(fields["positions"]))
    support = Support.checked(np.sort(sent), place.view)
    ordered = stage_of("index", INDEX_CODECS, fields["settings"]).ordered
    return {"payload": ordered.encode(support, np.searchsorted(support.positions, sent)).hex()}


def _decode_ordered(fields: Fields) -> dict[str, str]:
    kept = int(fields["kept"]) if "kept" in fields else len(fields["positions"].split())
    ordered = stage_of("index", INDEX_CODECS, fields["settings"]).ordered
    support, order = ordered.decode(bytes.fromhex(fields["payload"]), kept, Place.of(fields).view)
    return {"positions": " ".join(map(str, support.positions[order]))}


def value_support(fields: Fields) -> Support:
    """Of `positions` where a case has them, or as many as there are values."""
    place = Place.of(fields)
    if "positions" in fields:
        return Support.checked(numbers(fields["positions"]), place.view)
    return place.support(int(fields["kept"]) if "kept" in fields else len(place.values(fields["input"])))


def _encode_value(fields: Fields) -> dict[str, str]:
    place = Place.of(fields)
    codec = stage_of("value", VALUE_CODECS, fields["settings"])
    return {"payload": codec.encode(place.values(fields["input"]), value_support(fields), place.draw).hex()}


def _decode_value(fields: Fields) -> dict[str, str]:
    place = Place.of(fields)
    codec = stage_of("value", VALUE_CODECS, fields["settings"])
    payload = bytes.fromhex(fields["payload"])
    return {"decoded": place.text(codec.decode(payload, value_support(fields), place.spec.value_dtype, place.draw))}


def _pipeline(fields: Fields) -> Pipeline:
    return Pipeline(Settings.from_string(fields["settings"], seed=int(fields.get("seed", "0"))))


def _encode_frame(fields: Fields) -> dict[str, str]:
    place, pipeline = Place.of(fields), _pipeline(fields)
    gradient = place.values(fields["input"])
    return {"frame": pipeline.encode(gradient, place.spec, pipeline.new_slots(place.spec), place.draw).frame.hex()}


def _decode_frame(fields: Fields) -> dict[str, str]:
    place, pipeline = Place.of(fields), _pipeline(fields)
    reader = ByteReader(bytes.fromhex(fields["frame"]), f"rank {place.draw.rank}")
    frame = pipeline.read(reader, place.spec)
    require_padding(reader)
    dense = np.zeros(place.spec.numel, place.spec.value_dtype)
    finite = pipeline.add_into(dense, frame, place.spec, place.draw, 1.0)
    return {"decoded": place.text(dense) if finite else "not finite"}


def _rows(fields: Fields) -> tuple[Place, RowPipeline]:
    return Place.of(fields), RowPipeline(RowSettings.from_string(fields["settings"], seed=int(fields.get("seed", "0"))))


def _encode_rows(fields: Fields) -> dict[str, str]:
    place, pipeline = _rows(fields)
    values = place.values(fields["input"]).reshape(-1, table_of(place.spec).columns)
    rows = Rows(np.array(numbers(fields["rows"]), np.int64), values)
    return {"frame": pipeline.encode(rows, place.spec, pipeline.new_slots(place.spec), place.draw).frame.hex()}


def _decode_rows(fields: Fields) -> dict[str, str]:
    place, pipeline = _rows(fields)
    reader = ByteReader(bytes.fromhex(fields["frame"]), f"rank {place.draw.rank}")
    frame = pipeline.read(reader, place.spec)
    require_padding(reader)
    if frame is None:
        return {"merged": "", "decoded": ""}
    rows = pipeline.decode(frame, place.spec, place.draw)
    return {"merged": " ".join(map(str, rows.numbers)), "decoded": place.text(rows.values)}


def _header(fields: Fields) -> BundleHeader:
    fingerprint = Settings.from_string(fields["settings"], seed=int(fields.get("seed", "0"))).fingerprint
    return BundleHeader(fingerprint, *(int(fields[key]) for key in ("rank", "bucket", "step")))


def _encode_bundle(fields: Fields) -> dict[str, str]:
    if "message" in fields:
        return {"bundle": _header(fields).error(fields["message"]).hex()}
    return {"bundle": _header(fields).frames(bytes.fromhex(fields["body"])).hex()}


def _decode_bundle(fields: Fields) -> dict[str, str]:
    """The bundle alone in its gather, which is that of rank 0."""
    try:
        (reader,) = split_bundles(bytes.fromhex(fields["bundle"]), _header(fields), 1)
    except RemoteRankError as error:
        return {"message": str(error).removeprefix(f"rank {fields['rank']}: ")}
    body = reader.take(len(bytes.fromhex(fields["body"])), "body")
    require_padding(reader)
    return {"body": body.hex()}


def _fingerprint(fields: Fields) -> dict[str, str]:
    settings = Settings.from_string(fields["settings"], seed=int(fields["seed"]))
    return {"spelled_out": str(settings), "fingerprint": f"{settings.fingerprint:08x}"}


def _random(fields: Fields) -> dict[str, str]:
    draw = Place.of(fields).draw
    key = draw.shared_key() if fields["shared"] == "yes" else draw.key()
    return {"key": f"{key:016x}", "draws": " ".join(f"{z:016x}" for z in _native.random_u64(key, 4).tolist())}


@dataclass(frozen=True)
class Kind:
    """`encode` completes a case, `decode` gives its inputs back; `wire` is the field with the bytes."""

    wire: str
    encode: Callable[[Fields], dict[str, str]]
    decode: Callable[[Fields], dict[str, str]]


KINDS: Mapping[str, Kind] = {
    "index": Kind("payload", _encode_index, _decode_index),
    "ordered": Kind("payload", _encode_ordered, _decode_ordered),
    "value": Kind("payload", _encode_value, _decode_value),
    "frame": Kind("frame", _encode_frame, _decode_frame),
    "rows": Kind("frame", _encode_rows, _decode_rows),
    "bundle": Kind("bundle", _encode_bundle, _decode_bundle),
    "fingerprint": Kind("fingerprint", _fingerprint, _fingerprint),
    "random": Kind("draws", _random, _random),
}


def complete(fields: Fields) -> dict[str, str]:
    """An accepted case with the bytes that our encoder makes, and what they decode to."""
    kind = KINDS[fields["kind"]]
    whole: dict[str, Any] = dict(fields)
    if kind.wire not in whole:
        whole |= kind.encode(whole)
    return whole | {key: value for key, value in kind.decode(whole).items() if key not in whole}
