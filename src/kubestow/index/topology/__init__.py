"""How many pods and terms are in each topology domain."""
