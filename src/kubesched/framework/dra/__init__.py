"""The part of dynamic resource allocation that several plugins use."""
