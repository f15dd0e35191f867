"""MIMIC-IV v2.2 and v3.1: its tables, its items, and how they are read as events."""
