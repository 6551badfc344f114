"""The recount of several tables, by DuckDB, from the written files."""
