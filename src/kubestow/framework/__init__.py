"""The contract between the scheduler and its plugins.

Extension points, status codes, the state of one cycle, the registry, profiles, and the runner that
combines what the plugins of a profile say. Knows no plugin by name.
"""
