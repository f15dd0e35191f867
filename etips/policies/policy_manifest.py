"""What the manifest of a policy is called; known without torch, which opening one needs."""

MANIFEST = "policy.json"
