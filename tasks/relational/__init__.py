"""Jobs of several tables: draft, plan, publication, report and verification."""
