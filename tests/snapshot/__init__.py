"""Tests of kubesched.snapshot."""
