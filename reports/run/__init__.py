"""The report of one run: its summary as text, its page, its timeline."""
