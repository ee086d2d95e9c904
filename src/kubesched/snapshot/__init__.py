"""The cluster as columns: one row per node, read-only for the length of a cycle."""
