"""The self-test: anomalies are planted in generated data, and reconciliation must find them."""
