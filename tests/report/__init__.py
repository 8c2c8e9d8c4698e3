"""The page of a training run: what it says, and what a browser makes of it."""
