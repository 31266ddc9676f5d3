"""The language of topologies, and the reading of YAML documents."""
