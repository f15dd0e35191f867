"""What comes of a cohort: dose classes and actions, samples, funnel, files, Trajectories."""
