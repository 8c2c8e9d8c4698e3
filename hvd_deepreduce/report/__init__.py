"""A training run, as JSON lines, told on one HTML page that needs no network."""

from hvd_deepreduce.report.page import make_page

__all__ = ["make_page"]
