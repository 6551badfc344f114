"""Histories of persons over several tables: profiles, lattice search, cuts and withheld rows."""
