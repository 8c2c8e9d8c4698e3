"""What every registered stage must pass; see README.md in this folder."""
