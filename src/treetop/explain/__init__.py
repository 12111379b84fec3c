"""Explain why a model gives a label its score: words, encoder, bias, label tree, similar documents."""
