"""Results as typed data, and evaluate, which makes them."""
