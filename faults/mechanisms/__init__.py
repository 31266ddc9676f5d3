"""What several faults share: packet filters, toxics, JVM rules, processes, disks."""
