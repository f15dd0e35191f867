"""Learn, evaluate and explain treatment policies from logged decisions."""

__version__ = "0.1.0"
