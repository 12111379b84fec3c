"""Ranking metrics, their results and scorers for scikit-learn."""
