"""The PySpark pipeline that compares the output of a job with its expected output."""
