"""Simulations: the scheduler without a real API server."""
