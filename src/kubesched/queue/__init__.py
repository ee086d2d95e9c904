"""Pods that wait."""
