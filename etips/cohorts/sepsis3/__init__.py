"""The rules of the Sepsis-3 cohort, on events that say nothing about where they were charted."""
