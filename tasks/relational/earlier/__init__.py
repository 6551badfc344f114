"""Comparison of releases of several tables with earlier ones; a person's class is their history.

Each person counts as one record, and the person's history is its class.
"""
