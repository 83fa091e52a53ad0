"""Builders and clocks for tests, public so that plugin authors can use them too.

The one folder outside the layers: it may import anything.
"""
