"""One file a learner."""
