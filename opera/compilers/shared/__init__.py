"""What several compilers use."""
