"""Explanations of decisions: a cycle's trace as data, sentences and tables; pure functions."""
