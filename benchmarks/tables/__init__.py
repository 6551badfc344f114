"""Several tables of one person: their cost and loss, compared with single tables and joins."""
