"""Tests of the cluster to play in."""
