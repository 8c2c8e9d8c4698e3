"""The part of a check that runs in another process: `python -m conformance.elsewhere`, a pickled call on stdin.

The answer goes to stdout as a pickle. The environment has another hash seed and thread count than the caller's.
"""

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hvd_deepreduce
from hvd_deepreduce.contracts import IndexCodec, ValueCodec
from hvd_deepreduce.errors import CorruptPayloadError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MAX_NUMEL, MatrixView, Support

_SPARE_BYTES = 256 * 2**20
_PAYLOADS = [bytes([fill]) * size for size in (0, 1, 16, 4096) for fill in (0x00, 0x55, 0xFF)]
_COUNTS = (2**20, 2**31, 2**32 + 5, MAX_NUMEL)


def run(
    function: Callable[..., Any], *arguments: Any, hash_seed: int = 1, threads: int = 1, timeout: float = 60
) -> Any:
    """The function's result, from a process of its own."""
    roots = [Path(__file__).parents[1], Path(hvd_deepreduce.__file__).parents[1]]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, roots)),
        "PYTHONHASHSEED": str(hash_seed),
        "OMP_NUM_THREADS": str(threads),
    }
    done = subprocess.run(
        [sys.executable, "-m", "conformance.elsewhere"],
        input=pickle.dumps((function, arguments)),
        env=environment,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{function.__name__} ended with {done.returncode}: {done.stderr.decode()[-2000:]}"
    return pickle.loads(done.stdout)


def digest(chunks: list[bytes]) -> str:
    return hashlib.sha256(b"".join(len(chunk).to_bytes(8, "little") + chunk for chunk in chunks)).hexdigest()


def index_digest(codec: IndexCodec, supports: list[Support], draw: Draw) -> str:
    return digest([codec.encode(support, draw) for support in supports])


def value_digest(codec: ValueCodec, arrays: list[tuple[np.ndarray, Support]], draw: Draw) -> str:
    return digest([codec.encode(values, support, draw) for values, support in arrays])


def decode_with_little_memory(codec: IndexCodec | ValueCodec, draw: Draw) -> list[str]:
    """What goes wrong when short payloads claim huge counts and there is no memory to believe them; best nothing."""
    import resource  # not on Windows

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    wrong = []
    for payload in _PAYLOADS:
        for kept in _COUNTS:
            for numel in {kept, MAX_NUMEL}:
                try:
                    _decode(codec, payload, kept, MatrixView(1, numel), draw)
                    found = "no error"
                except CorruptPayloadError:
                    continue
                except Exception as error:
                    found = type(error).__name__
                wrong.append(f"{len(payload)} bytes, kept {kept}, numel {numel}: {found}")
    return wrong


def _decode(codec: IndexCodec | ValueCodec, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> None:
    if isinstance(codec, IndexCodec):
        codec.decode(payload, kept, view, draw)
        return
    # Strides of zero: a support of any length in a few bytes.
    positions = np.broadcast_to(np.zeros(1, view.position_dtype), kept)
    codec.decode(payload, Support(positions, view), np.dtype(np.float32), draw)


if __name__ == "__main__":
    _function, _arguments = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps(_function(*_arguments)))
