"""The run folder, its checkpoints and its log."""
