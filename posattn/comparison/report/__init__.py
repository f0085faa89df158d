"""The report of a study: one HTML page, the same in Markdown, results.json, and its figures."""

from posattn.comparison.report.write import ReportPaths, write_report

__all__ = ["ReportPaths", "write_report"]
