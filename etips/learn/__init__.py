"""Learners and simple policies: `fit`, `predict_proba`, `predict` on Trajectories."""

from etips.learn.simple import BestPossible, LoggingPolicy, MostFrequent, RandomPolicy

__all__ = ["BestPossible", "LoggingPolicy", "MostFrequent", "RandomPolicy"]
