"""How a model is learned, stage by stage."""
