"""Frozen byte vectors; see README.md in this folder."""
