"""The contract between the scheduler and its plugins.

Extension points, status codes, the state of one cycle, profiles, and the runner that combines the
answers of a profile's plugins. No plugin is named here.
"""
