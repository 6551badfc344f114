"""Making of a release of several tables: joined rows, profiles, levels and written tables."""
