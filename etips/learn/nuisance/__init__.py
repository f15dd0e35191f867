"""What a policy is learned with: propensities, outcomes, support."""
