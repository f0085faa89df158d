"""Training: text in, batches, one plain loop, checkpoints, evaluation."""
