"""The behaviour of the containers of a fake cluster, one file for each family of faults.

Each module has `install(cluster)`, called for every fake cluster: it adds handlers to the fake
runtime (`on_exec`, `on_network_tool`) or sets the load of the run (`cluster.run.steering`).
"""
