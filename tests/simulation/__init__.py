"""Many small random scenarios, each under every fault plan, checked after every step."""
