"""The command line: one small file per verb, none of which imports more than it needs to print its help."""
