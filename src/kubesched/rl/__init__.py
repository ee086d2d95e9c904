"""A Gymnasium environment whose steps are scheduling decisions: `pip install kubesched[rl]`."""

from kubesched.rl.environment import SchedulingEnv
from kubesched.rl.rewards import balance, packing

__all__ = ["SchedulingEnv", "balance", "packing"]
