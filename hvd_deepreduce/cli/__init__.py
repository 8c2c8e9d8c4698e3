"""The command `hvd-deepreduce`."""
