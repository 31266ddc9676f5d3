"""The smallest experiment that fails as a run did."""
