"""Exit codes that no refusal carries."""

INTERRUPTED = 130
"""After Ctrl-C, as shells have it."""
