"""A fitted policy, its files and its recommendations."""
