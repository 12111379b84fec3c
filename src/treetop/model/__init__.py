"""What was learned, and the folder it is kept in."""
