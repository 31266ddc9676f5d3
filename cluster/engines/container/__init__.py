"""Any other system, from an image of its own."""
