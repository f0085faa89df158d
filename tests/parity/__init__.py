"""Equality with original implementations, weights copied."""
