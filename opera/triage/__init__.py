"""What failures mean: findings, what partners tell, replays, reproducers."""
