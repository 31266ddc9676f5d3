"""Links: named TCP paths between nodes that run through Toxiproxy."""
