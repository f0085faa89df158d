"""Studies: plan, proof of control, runs, evaluations, statistics, report."""
