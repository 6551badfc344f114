"""Jobs of several tables: from their sources to a release that is recounted and published."""
