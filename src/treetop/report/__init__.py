"""Reports about models: one self-contained HTML file, without scripts."""
