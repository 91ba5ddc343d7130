"""Complete incomplete utterances of a dialogue: two-stage rewriting on editing operations."""

from teo.alignment import derive_edits
from teo.dialogue import Dialogue
from teo.edits import EditScript, apply_edits
from teo.errors import TeoError

__version__ = "0.1.0"
__all__ = ["Dialogue", "EditScript", "TeoError", "__version__", "apply_edits", "derive_edits"]
