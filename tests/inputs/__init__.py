"""Tests of what is read."""
