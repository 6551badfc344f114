"""Histories of persons over several tables: profiles, the search of one lattice, rows that are withheld."""
