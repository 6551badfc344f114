"""Jobs of several tables of one person: what they say, the tree of their tables, and the manifest of their releases."""
