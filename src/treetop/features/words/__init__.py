"""Text to sparse features."""
