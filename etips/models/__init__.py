"""Torch modules: causal encoders, the policy network, many of them as one bundle."""
