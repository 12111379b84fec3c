"""Labels: names, features, trees, relevance at every level."""
