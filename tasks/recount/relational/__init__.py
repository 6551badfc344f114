"""Recount of several tables from the written files, by DuckDB."""
