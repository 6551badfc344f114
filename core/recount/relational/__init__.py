"""The recount of several tables: SQL statements that join the written files and count persons."""
