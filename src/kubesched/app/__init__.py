"""The process: a scheduler on a real API server, from its flags to its exit code."""
