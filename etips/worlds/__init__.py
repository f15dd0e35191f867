"""Sources whose truth is known: digits (MNIST), icu_sepsis, clinic; `world_registry` lists them.

Import the world you need (`from etips.worlds import icu_sepsis`): only `digits` loads torch.
"""
