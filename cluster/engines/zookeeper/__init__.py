"""Apache ZooKeeper: the ensemble that elects leaders for Flink."""
