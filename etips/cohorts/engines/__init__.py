"""Where raw tables are and what runs the queries on them; which tables there are is handed in."""
