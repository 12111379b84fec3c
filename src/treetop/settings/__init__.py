"""Settings of the method: their definitions, notation, presets and data-dependent defaults."""
