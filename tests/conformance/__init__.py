"""Recorded decisions of kube-scheduler 1.36, family by family."""
