"""Pages over several study folders: the same frame for suites and for compared studies."""

from posattn.comparison.overview.page import Banner, Overview, OverviewPaths, write_overview

__all__ = ["Banner", "Overview", "OverviewPaths", "write_overview"]
