"""Kernels of the `triton` backend; imported only when it runs, since they need the package."""
