"""Tests of kubesched.plugins."""
