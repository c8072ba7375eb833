"""The script that shows a finding: which test it takes, in how few words, and as a test of another suite."""
