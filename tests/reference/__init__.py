"""A slow second reading of FORMAT.md in plain Python, and nothing of hvd_deepreduce; see README.md in this folder."""
