"""What a table would be read as, before anything is learned from it."""
