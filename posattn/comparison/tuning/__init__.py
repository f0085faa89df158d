"""Tuning: the same grid of values tried in every arm, on seeds that no result is reported for."""
