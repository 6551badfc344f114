"""The recount of several tables: statements that join the written files as a reader would, and what they say."""
