"""`python -m teo_lab`, which launchers of several processes need, is the command `teo-lab`."""

from __future__ import annotations

from teo_lab.cli.app import main

if __name__ == "__main__":
    main()
