"""Every golden vector, read by our code and by the reference; the files are never written here."""

import dataclasses
import re

import numpy as np
import pytest
from reference import bundle as reference_bundle
from reference import fingerprint, frame, index_codecs, randomness, rows, shared_support, value_codecs
from reference.bits import ByteReader as ReferenceReader
from reference.bits import CorruptError, TruncatedError

from golden import vectors
from golden.accept_cases import ACCEPTS
from golden.reject_cases import REJECTS
from hvd_deepreduce import errors
from hvd_deepreduce.batch import EncodeJob, make_batch
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.registry import VALUE_CODECS
from hvd_deepreduce.rows.merge import table_of
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.settings import Settings, stage_of
from hvd_deepreduce.wire.reader import ByteReader

FOLDER = vectors.FOLDER
INDEX_IDS = {
    "raw": 1,
    "bitmap": 3,
    "rice": 4,
    "rle": 5,
    "huffman(of='bytes')": 6,
    "huffman(of='gaps')": 7,
    "delta": 8,
    "matrix": 10,
    "pco(level=8)": 13,
    "auto": 14,
}


BLOOM_IDS = {False: 9, True: 12}


def read(folder, name):
    return vectors.read(FOLDER / folder / f"{name}.txt")


@pytest.mark.parametrize(("folder", "cases"), [("accepts", ACCEPTS), ("rejects", REJECTS)], ids=["accepts", "rejects"])
def test_every_case_has_its_file_and_every_file_its_case(folder, cases):
    assert {path.name for path in (FOLDER / folder).iterdir()} == {f"{name}.txt" for name in cases}


@pytest.mark.parametrize("name", ACCEPTS)
def test_a_file_says_what_its_case_says(name):
    fields = read("accepts", name)
    assert {key: fields[key] for key in ACCEPTS[name]} == vectors.read_text(vectors.write(ACCEPTS[name]))
    assert fields["why"]


@pytest.mark.parametrize("name", REJECTS)
def test_a_reject_says_what_its_case_says(name):
    assert read("rejects", name) == vectors.read_text(vectors.write(REJECTS[name]))


@pytest.mark.parametrize("name", ACCEPTS)
def test_is_written(name):
    fields = read("accepts", name)
    if fields.get("written") == "no":
        return
    kind = vectors.KINDS[fields["kind"]]
    for key, value in kind.encode({key: value for key, value in fields.items() if key != kind.wire}).items():
        assert value.replace(" ", "") == fields[key].replace(" ", ""), key


@pytest.mark.parametrize("name", ACCEPTS)
def test_is_read(name):
    fields = read("accepts", name)
    for key, value in vectors.KINDS[fields["kind"]].decode(fields).items():
        assert_same(fields, key, value)


@pytest.mark.parametrize("name", [name for name, case in ACCEPTS.items() if case["kind"] == "frame"])
def test_the_batch_writes_and_reads_frames_alike(name):
    fields = read("accepts", name)
    settings = Settings.from_string(fields["settings"], seed=int(fields.get("seed", "0")))
    place, batch = vectors.Place.of(fields), make_batch(settings)
    slots = Pipeline(settings).new_slots(place.spec)
    (encoded,) = batch.encode([EncodeJob(place.values(fields["input"]), place.spec, slots, place.draw)])
    assert encoded.frame == bytes.fromhex(fields["frame"])
    output = np.full(place.spec.numel, 7, place.spec.value_dtype)
    (decoded,) = batch.decode([ByteReader(encoded.frame, "test")], [place.spec], [output], lambda *_: place.draw, 1.0)
    assert_same(fields, "decoded", place.text(output) if decoded.finite else "not finite")


def assert_same(fields, key, value):
    """Equal text; which NaN a lossy codec's decoder makes is not said by the format."""
    if key == "decoded" and value != "not finite" and fields["settings"] != "raw":
        ours, pinned = (vectors.Place.of(fields).values(text) for text in (value, fields[key]))
        assert np.array_equal(ours, pinned, equal_nan=True)
        finite = ~np.isnan(pinned)
        assert np.array_equal(np.signbit(ours[finite]), np.signbit(pinned[finite]))
    else:
        assert value.replace(" ", "") == fields[key].replace(" ", ""), key


@pytest.mark.parametrize("name", REJECTS)
def test_is_refused(name):
    fields = read("rejects", name)
    with pytest.raises(getattr(errors, fields["error"])) as raised:
        vectors.KINDS[fields["kind"]].decode(fields)
    assert type(raised.value).__name__ == fields["error"]
    assert fields["message"] in str(raised.value)


# --- the same files under the eyes of the reference ---


def _value_settings(settings, draw, view):
    codec = stage_of("value", VALUE_CODECS, settings)
    key = randomness.key(draw.seed, draw.step, draw.rank, draw.tensor)
    known = {"key": key, "rows": view.rows, "columns": view.columns}
    return codec.wire_id, dataclasses.asdict(codec) | known


def _reference_index(fields):
    settings, key = fields["settings"], "positions"
    if settings.startswith("bloom"):
        wire_id, key = BLOOM_IDS["pybloom" in settings], "received"
    else:
        wire_id = INDEX_IDS[settings] if fields["kind"] == "index" else 2
    kept = int(fields["kept"]) if "kept" in fields else len(fields["positions"].split())
    view = vectors.Place.of(fields).view
    positions = index_codecs.decode(wire_id, bytes.fromhex(fields["payload"]), kept, view.rows, view.columns)
    return {key: " ".join(map(str, positions))}


def _reference_value(fields):
    place = vectors.Place.of(fields)
    support = vectors.value_support(fields)
    wire_id, settings = _value_settings(fields["settings"], place.draw, support.view)
    settings |= {"positions": support.positions.tolist()}
    width = 8 * place.spec.value_dtype.itemsize
    patterns = value_codecs.DECODERS[wire_id](bytes.fromhex(fields["payload"]), support.kept, width, settings)
    return {"decoded": " ".join(pattern.to_bytes(width // 8, "little").hex() for pattern in patterns)}


def _reference_frame(fields):
    settings, place = Settings.from_string(fields["settings"]), vectors.Place.of(fields)
    value = _value_settings(fields["settings"].split("+")[2], place.draw, place.view)
    codecs = frame.Codecs((settings.index.wire_id,), *value)
    if settings.sparsifier.name == "randomk":
        key = randomness.key(place.draw.seed, place.draw.step, randomness.ALL_RANKS, place.draw.tensor)
        kept = max(1, round(settings.sparsifier.density * place.spec.numel))
        codecs = frame.Codecs((shared_support.ID,), *value, (key, kept))
    width = 8 * place.spec.value_dtype.itemsize
    reader = ReferenceReader(bytes.fromhex(fields["frame"]))
    patterns = frame.decode(reader, codecs, place.spec.numel, width)
    reference_bundle.padding(reader)
    if fields["frame"] == "0001":
        return {"decoded": "not finite"}
    # A dense gradient of zeros to which frames are added has no negative zeros.
    patterns = [0 if pattern == 1 << (width - 1) else pattern for pattern in patterns]
    return {"decoded": " ".join(pattern.to_bytes(width // 8, "little").hex() for pattern in patterns)}


def _reference_rows(fields):
    place, settings = vectors.Place.of(fields), RowSettings.from_string(fields["settings"])
    table = table_of(place.spec)
    value = _value_settings(fields["settings"].split("+")[1], place.draw, table)
    width = 8 * place.spec.value_dtype.itemsize
    reader = ReferenceReader(bytes.fromhex(fields["frame"]))
    found = rows.decode(reader, frame.Codecs((settings.index.wire_id,), *value), table.rows, table.columns, width)
    reference_bundle.padding(reader)
    decoded = " ".join(pattern.to_bytes(width // 8, "little").hex() for pattern in found[1])
    return {"merged": " ".join(map(str, found[0])), "decoded": decoded}


def _reference_bundle(fields):
    text = "topk(density=0.01)+rice+qsgd(bits=7, bucket=512)+residual"
    place = (int(fields[key]) for key in ("rank", "bucket", "step"))
    expected = reference_bundle.Expected(fingerprint.fingerprint(text, int(fields["seed"])), *place)
    data = bytes.fromhex(fields["bundle"])
    kind, body, end = reference_bundle.decode(data, 0, expected)
    if end != len(data):
        raise CorruptError("bytes after the last bundle")
    if kind == reference_bundle.ERROR:
        return {"message": reference_bundle.error_text(body)}
    frames = body.take(len(bytes.fromhex(fields["body"])))
    reference_bundle.padding(body)
    return {"body": frames.hex()}


def _reference_random(fields):
    rank = randomness.ALL_RANKS if fields["shared"] == "yes" else int(fields["rank"])
    key = randomness.key(int(fields["seed"]), int(fields["step"]), rank, fields["tensor"])
    return {"key": f"{key:016x}", "draws": " ".join(f"{randomness.draw(key, index):016x}" for index in range(4))}


def _reference_fingerprint(fields):
    return {"fingerprint": f"{fingerprint.fingerprint(fields['spelled_out'], int(fields['seed'])):08x}"}


REFERENCE = {
    "index": _reference_index,
    "ordered": _reference_index,
    "value": _reference_value,
    "frame": _reference_frame,
    "rows": _reference_rows,
    "bundle": _reference_bundle,
    "random": _reference_random,
    "fingerprint": _reference_fingerprint,
}


@pytest.mark.parametrize("name", ACCEPTS)
def test_the_reference_reads_the_same(name):
    fields = read("accepts", name)
    for key, value in REFERENCE[fields["kind"]](fields).items():
        assert_same(fields, key, value)


@pytest.mark.parametrize("name", REJECTS)
def test_the_reference_refuses_too(name):
    fields = read("rejects", name)
    with pytest.raises(CorruptError) as raised:
        REFERENCE[fields["kind"]](fields)
    assert isinstance(raised.value, TruncatedError) == (fields["error"] == "TruncatedPayloadError")


def test_the_bits_told_are_those_of_the_payload():
    told = [name for name in ACCEPTS if "bits" in ACCEPTS[name]]
    assert told
    for name in told:
        fields = read("accepts", name)
        words = re.sub(r"\(.*?\)", "", fields["bits"]).replace(",", " ").split()
        bits = "".join(word for word in words if not word.strip("01"))
        payload = bytes.fromhex(fields["payload"])
        assert bits == "".join(str(byte >> place & 1) for byte in payload for place in range(8)), name
