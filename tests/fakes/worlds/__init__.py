"""What happens inside the containers of a fake cluster, one file a family of faults.

Each module has `install(cluster)`, called for every fake cluster: it hangs handlers into the fake
runtime (`on_exec`, `on_network_tool`) or sets what a run lends (`cluster.run.steering`).
"""
