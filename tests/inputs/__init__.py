"""Tests of the inputs room."""
