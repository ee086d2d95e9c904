"""How all tests run: no time limits per example, and in CI the same examples every time."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Reports are wrapped, as on a terminal.
os.environ["COLUMNS"] = "80"

pytest_plugins = ["kubesched.testing.pytest_plugin"]

# A busy machine is not a bug; what takes long is marked slow and measured in benchmarks.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
