"""Benchmarks of kubesched: scheduler_perf's workloads, plugins, kernels and scaling."""
