"""Deploys a topology: containers, engines, links, and the queries to them."""
