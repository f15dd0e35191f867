"""Policies against each other, and places against each other."""
