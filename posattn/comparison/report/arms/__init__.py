"""One page per arm: its runs, scores, figures and contrasts, its recipe and contract, its files."""

from posattn.comparison.report.arms.pages import write_arm_pages as write_arm_pages
