"""Recurrent networks, many at once, with a written-out backward pass."""
