"""The command `teo-lab`: one small file per verb."""
