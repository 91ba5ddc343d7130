"""Python runs this at its start, in child processes too: the packages named in TEO_BLOCKED cannot be imported."""

import os
import sys

sys.modules.update(dict.fromkeys(filter(None, os.environ.get("TEO_BLOCKED", "").split(",")), None))
