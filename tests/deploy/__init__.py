"""What is shipped: the container file, the manifests and the Helm chart."""
