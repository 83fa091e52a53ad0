"""A cluster that goes on by itself and is changed by forms: the demo behind the page."""
