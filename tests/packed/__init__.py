"""What is packed: the files of a wheel, and that the core needs no framework."""
