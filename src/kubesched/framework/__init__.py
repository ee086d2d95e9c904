"""The contract between the scheduler and its plugins: extension points, statuses, services."""
