"""`python -m teo` is the command `teo`."""

import sys

from teo.cli.app import main

sys.exit(main())
