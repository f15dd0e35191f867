"""What MIMIC-III and MIMIC-IV share: both were charted at the bedsides of one hospital."""
