"""The command line: commands and reports."""
