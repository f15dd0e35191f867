"""Pieces of work and who does them: processes, threads on a GPU, a cluster."""
