"""The scheduler without an API server: cluster and pods in, decisions out."""
