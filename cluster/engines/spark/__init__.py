"""Apache Spark: a standalone cluster with a driver of its own."""
