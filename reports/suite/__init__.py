"""The report of a suite: its results, as text, as a page, as Markdown."""
