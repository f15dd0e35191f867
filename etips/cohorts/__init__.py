"""Raw hospital tables to evaluated-ready cohorts; one folder per source."""
