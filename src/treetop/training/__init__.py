"""Training of a model, stage by stage."""
