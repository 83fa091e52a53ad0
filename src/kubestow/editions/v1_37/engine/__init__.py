"""Parts of the engine that v1.37 has in another form."""
