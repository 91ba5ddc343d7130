"""The field's datasets as rows: one reader per dataset, their splits, and where each is published."""

from teo.data.loading import READERS, load_rows, split_names
from teo.data.reader import Loaded, Skipped
from teo.data.row import Row

__all__ = ["READERS", "Loaded", "Row", "Skipped", "load_rows", "split_names"]
