"""The images of the shipped engines: pinned recipes, and building what is missing."""
