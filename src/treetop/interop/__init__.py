"""Models and settings of other programs."""
