"""What the examples of both wings share: images, their command line, and the comparison that `make demo` prints."""
