"""Tests of posattn.encoder."""
