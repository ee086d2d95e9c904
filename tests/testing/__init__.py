"""Tests of kubesched.testing."""
