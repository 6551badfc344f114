"""Roles that a draft gives to the columns of labelled tables."""
