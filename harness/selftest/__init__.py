"""The self-test: anomalies are planted in data made for it, and reconciliation must find them."""
