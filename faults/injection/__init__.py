"""Injection: intent, call, verified effect; heal, verified removal."""
