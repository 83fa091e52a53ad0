"""JSON Schemas of what is written and read, made of their structs."""
