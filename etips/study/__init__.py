"""Whole evaluations and experiments."""
