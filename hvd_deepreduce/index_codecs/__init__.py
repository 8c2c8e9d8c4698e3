"""Where the kept elements are: one file per index codec."""
