"""Kubernetes objects as frozen values: decode, encode, match, add up."""
