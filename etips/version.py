"""The version, where every part can read it."""

__version__ = "0.1.0"
