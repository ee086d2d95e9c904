"""Tests of kubesched.framework."""
