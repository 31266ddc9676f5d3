"""Shared by all reports: templates, colours, sentences, terminal output."""
