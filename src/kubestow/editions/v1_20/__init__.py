"""The scheduler of v1.20, with plugins; that of v1.17 differs in little."""
