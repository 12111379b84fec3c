"""Models, model folders and model cards."""
