"""Results as a page to look at."""
