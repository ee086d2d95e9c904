"""The scheduler: profiles, the scheduling cycle of a pod or pod group, binding, preemption."""
