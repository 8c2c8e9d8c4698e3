"""Trains the same net four times, dense and compressed, and prints one table. `make demo-tf` calls it."""

from pathlib import Path

from hvd_deepreduce.demo.comparison import compare

if __name__ == "__main__":
    compare(Path(__file__).with_name("fashion_mnist.py"), "tensorflow")
