"""The workspace: its schema, all SQL, corpus files."""
