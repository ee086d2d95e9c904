"""Speak to an API server: requests, watches, leader election, events."""
