"""Kubernetes objects as frozen values: decoding, encoding, selectors, quantities, requests."""
