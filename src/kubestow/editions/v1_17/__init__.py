"""The scheduler of v1.17: that of v1.20 with other plugins, texts and another order of nodes."""
