"""One pod's journey: profiles, the scheduling cycle, what becomes of its outcome."""
