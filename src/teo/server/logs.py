"""One JSON object a line on stderr; users' text is in none of them unless the user wants it."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("teo.server")


class JsonFormatter(logging.Formatter):
    """A log record as one line of JSON: time, level, event, and what was given as `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None and "failure" not in line:
            line["failure"] = describe_failure(record.exc_info[1], with_text=False)
        return json.dumps(line, ensure_ascii=True, default=str)


def describe_failure(error: BaseException, *, with_text: bool) -> dict[str, Any]:
    """Return what failed and where; an exception's own words may quote a user, so they need leave."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    frames = traceback.extract_tb(root.__traceback__)
    place = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
    failure: dict[str, Any] = {"error": type(root).__name__, "frames": place}
    return failure | {"message": str(root)} if with_text else failure


def log_config(level: str = "INFO", *, server_level: str | None = None) -> dict[str, Any]:
    """Return the logging set-up of a server, in the format of `logging.config.dictConfig`.

    `server_level`: that of the lines about starting and stopping, by default the same.
    """
    own = {"handlers": ["stderr"], "level": level, "propagate": False}
    server = server_level or level
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "teo.server.logs.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
        "loggers": {
            "teo.server": own,
            "uvicorn": own | {"level": server},
            "uvicorn.error": {"level": server},
            "asyncio": own | {"level": "WARNING"},
        },
    }
