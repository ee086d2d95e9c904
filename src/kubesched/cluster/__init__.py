"""A cluster to play in: nodes, kubelets, controllers, disruption budgets, and the store below."""
