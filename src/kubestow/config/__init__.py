"""What the scheduler is told to do: configuration types, their defaults and their validation.

Reads the current configuration format and the older ones, and knows the feature gates. Every value
leaves here complete and checked, so that nobody above has to ask whether a field was set.

Not here: which plugins exist (`plugins`), how they are put together (`framework`).
"""
