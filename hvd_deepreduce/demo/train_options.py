"""What `fashion_mnist.py` can be told, and how often it writes statistics."""

import argparse
from pathlib import Path

DEFAULT_COMPRESSION = "topk(density=0.01)+rice+qsgd(bits=7)"
WITHOUT_STATISTICS = ("dense", "fp16")
LOG_EVERY = 50
"""Steps."""


def parse_options(description: str) -> argparse.Namespace:
    """Reads the command line; ends the program when something on it is wrong."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--compression", default=DEFAULT_COMPRESSION, help="dense, fp16, or settings of DeepReduce")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with Fashion-MNIST's IDX files, .gz or not")
    parser.add_argument("--steps", type=positive_integer, default=1200, help="optimizer steps")
    parser.add_argument("--batch-size", type=positive_integer, default=128, help="images per rank and step")
    parser.add_argument("--lr", type=float, default=0.12, help="highest learning rate")
    parser.add_argument("--momentum", type=float, default=0.8, help="Nesterov momentum")
    parser.add_argument("--seed", type=int, default=0, help="of weights, shuffling and stochastic codecs")
    parser.add_argument("--amp", action="store_true", help="train in half precision, with a loss scale")
    parser.add_argument("--statistics", type=Path, metavar="FILE", help="write what was sent there, as JSON lines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there too")
    parser.add_argument(
        "--progress",
        choices=("auto", "bar", "lines", "steps"),
        default="auto",
        help="a live bar, a line per tenth or per hundredth; auto: a bar if the output is a terminal, else lines",
    )
    options = parser.parse_args()
    if options.statistics and options.compression in WITHOUT_STATISTICS:
        parser.error(f"--statistics: {options.compression} has none; needed are settings of DeepReduce")
    return options


def positive_integer(text: str) -> int:
    """For argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number
