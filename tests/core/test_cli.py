"""The command line, as a user would call it."""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvd_deepreduce.batch import make_batch
from hvd_deepreduce.cli import bench as bench_command
from hvd_deepreduce.cli.bench import load
from hvd_deepreduce.cli.main import main
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.measure import measure
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.recipes import RECIPES
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS
from hvd_deepreduce.settings import Settings, describe
from hvd_deepreduce.sparse import TensorSpec

KEYS = [
    "sparsifier",
    "index",
    "value",
    "exact_index",
    "numel",
    "kept",
    "index_bits",
    "value_bits",
    "frame_bits",
    "relative_volume",
    "relative_error",
    "encode_ms",
    "decode_ms",
    "recipe",
]


@pytest.fixture
def gradient(tmp_path: Path) -> Path:
    path = tmp_path / "layer.npy"
    np.save(path, np.random.default_rng(0).standard_normal((30, 100)).astype(np.float32))
    return path


def npy(shape: str, more: str = "", descr: str = "'<f4'") -> bytes:
    """A file with a header that says so."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, {more}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)


def bench(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    assert main(["bench", *map(str, arguments), "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def words(printed: str) -> str:
    return " ".join(printed.replace("│", " ").split())


def test_codecs_lists_every_stage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["codecs"]) == 0
    printed = capsys.readouterr().out
    for kind in (SPARSIFIERS, INDEX_CODECS, VALUE_CODECS, MEMORIES):
        for stage in kind.values():
            assert describe(stage()) in printed
    for name in RECIPES:
        assert name in printed


def test_bench_tells_exact_sizes(gradient: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = bench(capsys, gradient, "--density", 0.01, "--index", "raw", "--value", "qsgd(bits=7)")
    assert list(one) == KEYS
    assert (one["sparsifier"], one["index"], one["value"]) == ("topk(density=0.01)", "raw", "qsgd(bits=7, bucket=512)")
    assert (one["numel"], one["kept"], one["exact_index"]) == (3000, 30, True)
    # 30 positions of 32 bits; a norm and 30 fields of 7 bits, padded; 5 varints of a byte each.
    assert one["index_bits"] == 32
    assert one["value_bits"] == 8 * (4 + 27) / 30
    assert one["frame_bits"] == pytest.approx(8 * (120 + 31 + 5) / 30)
    assert one["relative_volume"] == pytest.approx((120 + 31 + 5) / 12000)
    assert 0 < one["relative_error"] < 0.1


def test_bench_takes_all_codecs(gradient: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = bench(capsys, gradient)
    assert {one["index"].partition("(")[0] for one in found} == set(INDEX_CODECS)
    assert {one["value"].partition("(")[0] for one in found} == set(VALUE_CODECS)
    assert all(one["relative_error"] == 0 for one in found if one["value"] == "raw" and one["exact_index"])


def test_bench_takes_every_combination_asked_for(gradient: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--density=0.1", "--density=0.01", "--index=rice", "--index=raw", "--value=fp16")
    assert [(one["sparsifier"], one["index"]) for one in bench(capsys, gradient, *asked)] == [
        ("topk(density=0.1)", "rice"),
        ("topk(density=0.1)", "raw"),
        ("topk(density=0.01)", "rice"),
        ("topk(density=0.01)", "raw"),
    ]
    (one,) = bench(capsys, gradient, "--sparsifier=threshold(value=2.0)", "--index=rice", "--value=raw")
    assert one["kept"] == np.count_nonzero(np.abs(np.load(gradient)) > 2)


def test_bench_takes_recipes(gradient: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = bench(capsys, gradient, "--recipe=top_r", "--recipe=strom(value=1.5)")
    assert (one["recipe"], one["index"], one["value"], one["frame_bits"] // 64) == ("top_r", "raw", "raw", 1)
    assert other["recipe"] == "strom(value=1.5)"
    assert other["kept"] == np.count_nonzero(np.abs(np.load(gradient)) > 1.5)
    assert [found["recipe"] for found in bench(capsys, gradient, "--recipe=smallest", "--index=rice")] == [
        "",
        "smallest",
    ]
    assert main(["bench", str(gradient), "--recipe", "smallest"]) == 0
    assert "smallest" in capsys.readouterr().out


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "layer.npy" for folder in ("a", "b")] + [tmp_path / "other.npy"]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        np.save(path, np.full(3, number, np.float32))
    assert {name: array[0] for name, array in load(paths).items()} == {str(paths[0]): 0, str(paths[1]): 1, "other": 2}


def test_bench_prints_a_table_and_draws(gradient: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "picture.png"
    assert main(["bench", str(gradient), "--plot", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "layer: 3,000 elements, topk(density=0.01) keeps 30" in printed
    assert "rice+raw" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no array", "no .npy array"),
        (None, "No such file"),
        (np.arange(3), "floating-point"),
        (np.empty(0), "not empty"),
        (npy("(1000000000000000,)"), "no .npy array"),
        (npy("(4,)", "'x': " + "(" * 5000), "no .npy array"),
        (npy("(4,)", "'x': ["), "no .npy array"),
        (npy("(4,)", descr="(None, [])"), "no .npy array"),
        (npy("(2,)")[:-1], "no .npy array"),
        (b"\x93NUMPY\x01\x00\xff\xff{'descr'", "no .npy array"),
    ],
)
def test_bench_refuses_other_files(
    content: object, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    assert main(["bench", str(path)]) == 1
    assert message in capsys.readouterr().err


@given(st.integers(0, 79), st.binary(min_size=1, max_size=6))
def test_bench_takes_any_damaged_header_or_refuses_it(place: int, damage: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.npy"
        whole = npy("(2,)")
        path.write_bytes(whole[:place] + damage + whole[place + len(damage) :])
        with contextlib.suppress(InvalidSettingError):
            assert set(load([path])) == {"damaged"}


@pytest.mark.parametrize(("dtype", "size"), [("<f8", 1e300), (">f8", -1e300), ("<f8", 1e-300), ("<f4", 1e-30)])
def test_bench_tells_the_error_of_any_magnitude(
    dtype: str, size: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "some.npy", np.array([size, -size] * 50, dtype))
    exact, lossy = bench(capsys, tmp_path / "some.npy", "--recipe=topk(density=0.1)+rice+raw", "--recipe=topk+raw+bf16")
    assert exact["relative_error"] == 0
    assert 0 <= lossy["relative_error"] <= 1


def test_json_has_null_for_what_is_not_finite(
    gradient: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = measure(np.load(gradient), Settings.from_string("topk"))
    monkeypatch.setattr(bench_command, "measure", lambda *_: replace(measured, relative_error=math.inf))
    assert {one["relative_error"] for one in bench(capsys, gradient, "--index=rice")} == {None}


def test_bench_names_a_gradient_that_is_not_finite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "bad.npy", np.array([1.0, np.nan]))
    assert main(["bench", str(tmp_path / "bad.npy")]) == 1
    assert "bad: the gradient holds a NaN" in capsys.readouterr().err


def bundle(settings: Settings) -> bytes:
    specs = [TensorSpec("a", (20, 30)), TensorSpec("b", (40,))]
    bucket = Bucket(2, specs, settings, make_batch(settings), 1, 3)
    for member, spec in enumerate(specs):
        values = np.arange(spec.numel, dtype=np.float32) * (member == 0)
        bucket.put(member, values.astype(np.float32), Pipeline(settings).new_slots(spec))
    bucket.encode(bucket.close())
    return bucket.bundle()


# A folder of its own would be needed for "[/b]": in a file's name the slash is another character.
FOREIGN = "[red]x[\u2044b] :smile: [link=y]"


def test_names_of_files_are_nobodys_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    path = tmp_path / f"{FOREIGN}.npy"
    np.save(path, np.random.default_rng(0).standard_normal(100).astype(np.float32))
    assert main(["bench", str(path), "--index=rice"]) == 0
    assert f"{FOREIGN}: 100 elements" in capsys.readouterr().out
    folder = tmp_path / "[red]["
    folder.mkdir()
    (folder / "b]\x1b[31m").write_text("03 01 02 01 08 09 0000803f 000000c0")
    assert main(["inspect", f"{folder}/b]\x1b[31m"]) == 0
    assert "[red][/b]\\x1b[31m: 14 bytes" in "".join(capsys.readouterr().out.splitlines()[:3])


def test_the_message_of_an_error_bundle_is_nobodys_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    settings = Settings.from_string("topk")
    specs = [TensorSpec("a", (20, 30))]
    bucket = Bucket(2, specs, settings, make_batch(settings), 1, 3)
    (tmp_path / "bundle").write_bytes(bucket.error_bundle("[bold]tensor[/] [/b] :boom: \x1b[31m"))
    assert main(["inspect", str(tmp_path / "bundle")]) == 0
    assert "[bold]tensor[/] [/b] :boom: \\x1b[31m" in capsys.readouterr().out


@pytest.mark.parametrize("as_text", [False, True])
def test_inspect_explains_a_bundle(as_text: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.from_string("topk(density=0.05)+rice+qsgd(bits=7)")
    data = bundle(settings)
    path = tmp_path / "bundle"
    path.write_bytes(data.hex().encode() if as_text else data)
    assert main(["inspect", str(path)]) == 0
    printed = words(capsys.readouterr().out)
    for part in ("magic DR", "frames", f"{settings.fingerprint:08x}", "rank 1", "bucket 2", "kept 30"):
        assert part in printed
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert main(["inspect", str(path)]) == 1
    assert "checksum" in capsys.readouterr().err


def test_inspect_explains_a_frame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of FORMAT.md, 3."""
    path = tmp_path / "frame.hex"
    path.write_text("03 01 02 01 08 09 0000803f 000000c0")
    assert main(["inspect", str(path), "--numel", "8"]) == 0
    printed = words(capsys.readouterr().out)
    for part in ("index id 3", "(bitmap)", "value id 1", "(raw)", "4.00 bits per kept", "32.00 bits per kept"):
        assert part in printed
    assert main(["inspect", str(path), "--numel", "1"]) == 1
    assert "kept is 2; allowed is 1 to numel 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--density=0.5", "--sparsifier=topk"], "--density is that of topk"),
        (["--compensated=3"], "it goes without files"),
        (["--density=0"], "topk: density=0.0; allowed is above 0, up to 1"),
        (["--index=gzip"], "index: 'gzip' is unknown"),
    ],
)
def test_bench_refuses(arguments: list[str], message: str, gradient: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(gradient), *arguments]) == 1
    assert message in capsys.readouterr().err
