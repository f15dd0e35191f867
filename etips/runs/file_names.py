"""What the files and folders of a run are called; `RunFolder` says what is in them."""

POLICY, PROPENSITY = "policy", "propensity"
CONFIG, PATH, RESULTS = "config.toml", "path.json", "results.json"
LOG, CHECKPOINT = "log.jsonl", "checkpoint"
