"""KubeSchedulerConfiguration v1: decode, default, validate; all faults at once, by field path."""
