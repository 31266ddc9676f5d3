"""The clusters of consecutive runs: their reuse, clean-up and proof."""
