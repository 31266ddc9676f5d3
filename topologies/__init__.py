"""The language: what shall be deployed, and the YAML documents that say so."""
