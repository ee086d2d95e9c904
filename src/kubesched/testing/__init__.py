"""Builders and fakes for plugin authors and for our own tests."""
