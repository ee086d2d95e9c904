"""The shipped container file, manifests and Helm chart."""
