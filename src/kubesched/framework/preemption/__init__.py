"""Preemption decides whom to evict so that a pod of higher priority fits; it evicts nobody."""
