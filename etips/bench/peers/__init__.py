"""Policy learners of other packages, one small adapter each; a module here needs its package."""
