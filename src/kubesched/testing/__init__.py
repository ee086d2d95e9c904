"""Builders and fakes for people who write plugins, and for the project's own tests."""
