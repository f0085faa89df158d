"""Budgets: what is held equal between arms beside the steps, and how each arm is changed for it."""
