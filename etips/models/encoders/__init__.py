"""What reads the steps of a stay: one file an encoder."""
