"""What the examples of both wings share."""
