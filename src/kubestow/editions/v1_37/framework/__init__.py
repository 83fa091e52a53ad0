"""Parts of the framework that v1.37 has in another form."""
