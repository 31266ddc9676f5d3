"""Coverage: which fault met which phase of the protocol, over many runs, and its page."""
