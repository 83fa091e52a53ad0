"""Plugins that v1.37 has in another form: each derives from the plugin of the core."""
