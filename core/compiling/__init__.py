"""Compilation of kernels by numba, the cache of compiled code, and notices of a first run."""
