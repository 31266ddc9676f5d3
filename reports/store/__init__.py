"""Every run of a folder in one database: what ran on what, how it ended, and its figures."""
