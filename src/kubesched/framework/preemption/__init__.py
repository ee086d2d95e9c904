"""Preemption: chooses the pods to evict so that a pod of higher priority fits. Evicts nothing."""
