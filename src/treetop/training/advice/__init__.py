"""Estimates of time, memory and disk before the work."""
