"""Several tables of one person: cost beside the unit alone and DuckDB's join, and loss beside releases table by table."""
