"""Files whole or not at all: writing, locks, seals, JSON, TOML, fingerprints."""
