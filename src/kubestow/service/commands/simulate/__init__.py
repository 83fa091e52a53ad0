"""`kubestow simulate`: where pods would go."""
