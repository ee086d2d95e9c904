"""Tests of kubesched.framework.preemption."""
