"""The pages of reference in `docs/`, made from the classes that they describe.

`python -m streamquake.harness.reference` writes all of them; a test compares them with what is
shipped.
"""
