"""The command line: parse, call, draw. Nothing here computes."""
