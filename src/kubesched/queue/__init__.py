"""The scheduling queue: activeQ, backoffQ, unschedulablePods, pods in flight, nominated pods."""
