"""The configuration: its types, defaults and validation, the older formats, the feature gates.

The result is complete and checked, so that no other folder has to handle missing fields.

Not here: which plugins exist (`plugins`), how a profile runs them (`framework`).
"""
