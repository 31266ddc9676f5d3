"""HDFS: one NameNode and its DataNodes."""
