"""The cluster as columns, one row per node, read-only during a scheduling cycle."""
