"""Which elements to keep: one file per rule."""
