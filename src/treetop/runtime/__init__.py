"""Where the work is done: threads, progress, files."""
