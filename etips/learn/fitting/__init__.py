"""Stays made ready, trainings asked for and driven, answers out of fold."""
