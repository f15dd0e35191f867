"""MIMIC-III and MIMIC-IV, both charted at the bedsides of one hospital."""
