"""The report of a comparison of topologies: its results, as text and as a page."""
