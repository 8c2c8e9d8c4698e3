"""The command line of `ncf.py`."""

import argparse
from pathlib import Path

from hvd_deepreduce.demo import feedback
from hvd_deepreduce.demo.train_options import positive_integer
from hvd_deepreduce.demo.ways import WAYS


def parse_options(description: str) -> argparse.Namespace:
    """Reads the command line; ends the program when something on it is wrong."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument(
        "--ways", nargs="+", default=WAYS, help="stock, sparse_as_dense, or index+value+memory for rows"
    )
    parser.add_argument("--data", type=Path, metavar="FILE", help="MovieLens: u.data, ratings.dat or ratings.csv")
    parser.add_argument("--steps", type=positive_integer, default=300, help="optimizer steps of each way")
    parser.add_argument("--batch-size", type=positive_integer, default=8192, help="positive pairs per rank and step")
    parser.add_argument("--negatives", type=positive_integer, default=4, help="items drawn for each positive pair")
    parser.add_argument("--users", type=positive_integer, default=feedback.USERS, help="of generated data")
    parser.add_argument("--items", type=positive_integer, default=feedback.ITEMS, help="of generated data")
    parser.add_argument("--dimension", type=positive_integer, default=64, help="of the embeddings")
    parser.add_argument("--lr", type=float, default=0.05, help="of Adagrad")
    parser.add_argument("--seed", type=int, default=0, help="of data, weights, and stochastic codecs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--progress", choices=("auto", "bar", "lines", "steps"), default="auto", help="how to show it")
    return parser.parse_args()


def feedback_of(options: argparse.Namespace) -> feedback.Feedback:
    """The file that was named, or else generated pairs."""
    if options.data:
        return feedback.load(options.data, options.seed)
    return feedback.generate(options.users, options.items, seed=options.seed)
