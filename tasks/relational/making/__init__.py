"""What makes a release of several tables: rows joined to their persons, profiles, levels, written tables."""
