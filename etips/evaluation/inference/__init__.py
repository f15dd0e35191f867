"""What so many clusters can say: evidence, estimates, intervals, differences."""
