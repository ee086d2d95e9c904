"""The observed cluster with assumed pods: nodes, pods on nodes, other objects, pod groups."""
