"""Answers to questions about a cluster: why a pod is pending, and what would help."""
