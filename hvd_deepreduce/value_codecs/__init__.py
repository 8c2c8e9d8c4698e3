"""What the kept elements are: one file per value codec."""
