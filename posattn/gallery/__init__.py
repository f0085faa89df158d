"""The gallery: every registered mechanism drawn and measured from its real code."""
