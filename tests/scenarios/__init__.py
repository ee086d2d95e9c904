"""Transcripts of the running scheduler: commands, each followed by what happens."""
