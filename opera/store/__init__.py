"""The workspace: its schema, all SQL (what is written in `workspace`, what is asked in a module a subject), corpus files."""
