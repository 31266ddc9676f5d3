"""JSON Schemas of the documents that users write, for editors."""
