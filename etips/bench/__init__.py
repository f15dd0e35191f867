"""Every method, and what a user would pick instead, in worlds whose truth is known."""
