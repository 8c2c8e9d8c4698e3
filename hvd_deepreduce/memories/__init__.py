"""What happens to what is not sent."""
