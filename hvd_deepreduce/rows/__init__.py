"""Gradients that are some rows of a table, as those of embeddings are: merged, coded by row, and never densified."""
