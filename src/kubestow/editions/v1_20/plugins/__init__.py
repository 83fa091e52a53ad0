"""The plugins of v1.17 and v1.20 where they differ from today's (spec 05 §19, 06 §6.6, 07 §7.2).

Each derives from today's plugin and replaces what was different, or is a plugin that no longer
exists. They follow the last patches, v1.20.15 and v1.17.17.
"""
