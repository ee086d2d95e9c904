"""Tests of the scheduler room."""
