"""The reference pages in `docs/`, generated from the classes that they describe.

`python -m streamquake.harness.reference` writes all of them; a test compares them with the
shipped pages.
"""
