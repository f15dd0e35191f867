"""Why a policy recommends what it does: attributions, rules, similar decisions, what to measure."""
