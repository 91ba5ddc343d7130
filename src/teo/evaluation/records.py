"""What an evaluation says of where its numbers came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from teo.data.row import Row


def hash_rows(rows: Iterable[Row]) -> str:
    """Return a hash of a dataset's rows, whichever files they came from."""
    digest = hashlib.blake2b(digest_size=16)
    for row in rows:
        digest.update(json.dumps(row.to_dict(), ensure_ascii=True, sort_keys=True).encode())
    return digest.hexdigest()
