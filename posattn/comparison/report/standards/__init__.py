"""Twenty things that a controlled comparison must do, and how a study did each, from its files."""

from posattn.comparison.report.standards.section import standard_sections as standard_sections
