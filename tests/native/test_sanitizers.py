"""`make native-test`: the kernels under ASan and UBSan, over the kept fuzz inputs and mutations of them."""

import os
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"


def test_no_input_breaks_a_promise_of_the_kernels():
    # What a surrounding make hands down, -j above all, is not for this one.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "-C", str(FUZZ), "-j2", "replay", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" mutations") == 22
