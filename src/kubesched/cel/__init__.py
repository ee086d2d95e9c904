"""Kubernetes' expression language (CEL), as far as device selectors use it."""
