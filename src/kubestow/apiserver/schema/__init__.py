"""The fields of kinds: what a document may contain, of which type, and how its lists merge.

    types      a schema: the one form for built-in kinds and for custom resources
    builtin    the schemas of the built-in kinds, read from `fields.txt` when first needed
    reading    a document against a schema: wrong types, unknown fields, nulls
    duplicates fields that a JSON text has twice
    known_fields  misspelt fields in files, with the field that was meant
    published  a schema as OpenAPI, for `kubectl explain`

The schemas are read at the edge: documents that clients send. Objects written from inside (by the
scheduler, controllers, simulations) do not pass here.
"""
