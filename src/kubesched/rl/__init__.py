"""A Gymnasium environment whose steps are scheduling decisions: `pip install kubesched[rl]`."""

from kubesched.inputs.sources import SchedulerOptions
from kubesched.rl.environment import UNPLACED, SchedulingEnv, balance, packing
from kubesched.simulator.cluster import ClusterState

__all__ = ["UNPLACED", "ClusterState", "SchedulerOptions", "SchedulingEnv", "balance", "packing"]
