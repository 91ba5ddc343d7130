"""`python -m teo` is the command `teo`."""

from teo.cli.app import main

main()
