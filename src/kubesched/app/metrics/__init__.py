"""Metrics: kube-scheduler's names, types, labels and buckets, on pages of text."""
