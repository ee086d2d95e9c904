"""The client of an API server: requests, watches, leader election, events."""
