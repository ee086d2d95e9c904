"""What we believe of the cluster: observed pods and nodes, plus pods we have just placed."""
