"""Transcripts of the running scheduler: commands, and under each everything that followed."""
