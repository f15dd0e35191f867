"""Long tables, frames and arrays to Trajectories."""
