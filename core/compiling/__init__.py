"""Loops that numba compiles: how, where the results are kept, and who is told that a first run compiles."""
