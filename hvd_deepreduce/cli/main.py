"""`hvd-deepreduce`: what codecs there are, what they make of a gradient, what a frame holds, how a training went."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hvd_deepreduce.cli import bench, codecs, inspect, report
from hvd_deepreduce.errors import DeepReduceError

_COMMANDS = {"codecs": codecs, "bench": bench, "inspect": inspect, "report": report}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="hvd-deepreduce", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        first_line = (module.__doc__ or "").partition("\n")[0]
        command = commands.add_parser(name, help=first_line, description=module.__doc__)
        module.add_arguments(command)
    options = parser.parse_args(arguments)
    try:
        _COMMANDS[options.command].run(options)
    except (DeepReduceError, ImportError, OSError) as error:
        sys.stderr.write(f"hvd-deepreduce {options.command}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
