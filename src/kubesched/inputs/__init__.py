"""What is read before anything is decided: clusters, configurations, plugins, names of pods."""
