"""A cluster in one event loop: API server, fake nodes, controllers, scheduler."""
