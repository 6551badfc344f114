"""Hierarchies of QIDs: one module per kind, each building the levels over a domain."""
