"""The documents show what the commands print, and their links lead somewhere."""
