"""Processes: fork server, workers, the pool that dispatches jobs, the clock that limits them."""
