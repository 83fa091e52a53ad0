"""Custom resources: a CustomResourceDefinition makes the server serve a kind of its own.

definitions   a definition as served resources; follows the definitions in the store
rules         defaults, status and rules of the definitions themselves
structural    the schema of a definition: what is kept, what is filled in
validation    the values that a schema allows
"""
