"""Writes the JSON Schema of explanations; a test compares it with the structs."""

from kubestow.explain.schema import SCHEMA_FILE, schema_text

SCHEMA_FILE.write_text(f"{schema_text()}\n")
