"""Fixtures of all tests: a cluster for each test that asks for one."""

pytest_plugins = ["kubesched.testing.pytest_plugin"]
