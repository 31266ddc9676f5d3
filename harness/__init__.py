"""Conducts experiments and judges them."""
