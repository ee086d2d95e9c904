"""The process of `kubesched run`: a scheduler on an API server, from options to exit code."""
