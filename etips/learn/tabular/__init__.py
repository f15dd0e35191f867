"""Numerical parts of methods that read one row a decision."""
