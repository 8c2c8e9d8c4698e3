"""Makes the table of docs/failures.md anew, job by job: `cd tests && python -m wings.make_failures_table`."""

from __future__ import annotations

import argparse
from pathlib import Path

from wings.failure_cases import FAULTS, TF_FAULTS, UNCAUGHT, Fault
from wings.failure_runs import BACKENDS, Outcome, observe

PAGE = Path(__file__).resolve().parents[2] / "docs/failures.md"
_HEAD = "| fault | what ranks that are left say, shortened | seconds to it: Gloo, MPI | exit codes, Gloo | MPI |"
_TF_HEAD = "| fault, with TensorFlow | what ranks that are left say, shortened | seconds to it | exit codes |"


def beginning(fault: Fault) -> str:
    """Of a fault's row: all that is not measured."""
    said = {backend: f"`{fault.shown(backend).replace('|', chr(92) + '|')}`" for backend in BACKENDS}
    text = said["gloo"] if said["gloo"] == said["mpi"] else f"{said['gloo']}; over MPI the launcher: {said['mpi']}"
    return f"| {fault.title} | {text} |"


def _row(fault: Fault) -> str:
    outcomes = [observe(fault, backend) for backend in BACKENDS]
    seconds = ", ".join(_seconds(one) for one in outcomes)
    ends = outcomes if not fault.caught else [observe(UNCAUGHT, backend) for backend in BACKENDS]
    return f"{beginning(fault)} {seconds} | {' | '.join(_codes(end) for end in ends)} |"


def _tf_row(fault: Fault) -> str:
    outcome = observe(fault, "gloo")
    return f"{beginning(fault)} {_seconds(outcome)} | {'caught' if fault.caught else _codes(outcome)} |"


def _seconds(outcome: Outcome) -> str:
    return "< 0.1" if outcome.message_s < 0.05 else f"{outcome.message_s:.1f}"


def _codes(outcome: Outcome) -> str:
    return f"{outcome.first_code}, {outcome.job.code}"


def _put(head: str, rows: list[str]) -> None:
    before, _, rest = PAGE.read_text().partition(f"{head}\n")
    after = rest.partition("\n\n")[2]
    ruler = "|---" * (head.count("|") - 1) + "|"
    PAGE.write_text(before + "\n".join([head, ruler, *rows]) + "\n\n" + after)
    print(f"{PAGE}: {len(rows)} faults")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wing", nargs="?", choices=("torch", "tf"), help="only the table of this one")
    wing = parser.parse_args().wing
    if wing != "tf":
        _put(_HEAD, [_row(fault) for fault in FAULTS])
    if wing != "torch":
        _put(_TF_HEAD, [_tf_row(fault) for fault in TF_FAULTS])


if __name__ == "__main__":
    main()
