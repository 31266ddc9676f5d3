"""The page of many nights: each experiment's outcomes and figures over time."""
