"""Releases of several tables held against earlier ones: each person is a record, and the history of the person its class."""
