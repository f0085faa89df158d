"""Recipes: YAML to objects and back, and from objects to a model, a run, a card."""
