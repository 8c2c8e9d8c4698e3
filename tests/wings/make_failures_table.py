"""Makes the table of docs/failures.md anew, job by job: `cd tests && python -m wings.make_failures_table`."""

from __future__ import annotations

from pathlib import Path

from wings.failure_cases import FAULTS, UNCAUGHT, Fault
from wings.failure_runs import BACKENDS, Outcome, observe

PAGE = Path(__file__).resolve().parents[2] / "docs/failures.md"
_HEAD = "| fault | what ranks that are left say, shortened | seconds to it: Gloo, MPI | exit codes, Gloo | MPI |"


def beginning(fault: Fault) -> str:
    """Of a fault's row: all that is not measured."""
    said = {backend: f"`{fault.shown(backend).replace('|', chr(92) + '|')}`" for backend in BACKENDS}
    text = said["gloo"] if said["gloo"] == said["mpi"] else f"{said['gloo']}; over MPI the launcher: {said['mpi']}"
    return f"| {fault.title} | {text} |"


def _row(fault: Fault) -> str:
    outcomes = [observe(fault, backend) for backend in BACKENDS]
    seconds = ", ".join("< 0.1" if one.message_s < 0.05 else f"{one.message_s:.1f}" for one in outcomes)
    ends = outcomes if not fault.caught else [observe(UNCAUGHT, backend) for backend in BACKENDS]
    return f"{beginning(fault)} {seconds} | {' | '.join(_codes(end) for end in ends)} |"


def _codes(outcome: Outcome) -> str:
    return f"{outcome.first_code}, {outcome.job.code}"


def main() -> None:
    rows = [_row(fault) for fault in FAULTS]
    before, _, rest = PAGE.read_text().partition(f"{_HEAD}\n")
    after = rest.partition("\n\n")[2]
    PAGE.write_text(before + "\n".join([_HEAD, "|---|---|---|---|---|", *rows]) + "\n\n" + after)
    print(f"{PAGE}: {len(rows)} faults")


if __name__ == "__main__":
    main()
