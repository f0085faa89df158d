"""Tests of several studies on one page."""
