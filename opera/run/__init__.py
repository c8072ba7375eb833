"""A run: plan, workers' jobs, verdicts and their rules, confirmation."""
