"""Studies beyond exact match: what search finds with rewrites, and a language model as the system compared with."""
