"""InterPodAffinity: the plugin, its sums of pods per topology domain, and its texts."""

from kubesched.plugins.inter_pod_affinity.inter_pod_affinity import InterPodAffinity

__all__ = ["InterPodAffinity"]
