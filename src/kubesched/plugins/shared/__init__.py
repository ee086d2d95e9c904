"""Code that several plugins need and that belongs to none of them.

Upstream: pkg/scheduler/framework/plugins/helper (v1.36)
"""
