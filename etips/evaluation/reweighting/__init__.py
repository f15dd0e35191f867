"""Weights that balance: fitted propensities corrected by what they leave out of balance."""
