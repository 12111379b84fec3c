"""What is learned: every setting, its notation, and what is decided from the data."""
