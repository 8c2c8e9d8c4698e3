"""What the examples and the command line train on: a small net and its images."""
