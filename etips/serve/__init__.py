"""A fitted policy as a service: pages for people to look at and try, JSON for programs."""
