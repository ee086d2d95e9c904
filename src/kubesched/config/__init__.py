"""KubeSchedulerConfiguration v1: decode, default, validate; reports all field errors at once."""
