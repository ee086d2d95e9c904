"""Tests of the Gymnasium environment."""
