"""Makes a topology real: containers, engines, links, and what is asked of them."""
