"""What the examples of both wings share: data, their command line, and the comparisons that the demos print."""
