"""Human judging of two systems: items, votes, the page, statistics, the report."""
