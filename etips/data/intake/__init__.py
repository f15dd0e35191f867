"""From a table as a hospital has it to what the strict reader takes."""
