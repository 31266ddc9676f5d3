"""The PySpark pipeline that compares what should have come out with what did."""
