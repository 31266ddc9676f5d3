"""Apache Flink: a session cluster with a SQL gateway."""
