"""Text to features."""
