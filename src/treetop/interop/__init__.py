"""Models, settings and plugins of other programs: PECOS, Annif."""
