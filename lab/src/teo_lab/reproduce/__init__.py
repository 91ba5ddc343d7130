"""The paper's tables and figures: trained, evaluated, stored and printed beside the published rows."""
