"""Jobs of several tables about persons: job model, tree of tables, and manifest of the release."""
