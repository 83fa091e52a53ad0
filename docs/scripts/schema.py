"""Writes the JSON Schemas of explanations and scenarios; tests compare them with the structs."""

from kubestow.explain import schema as explanation
from kubestow.simulator.scenario import schema as scenario

for each in (explanation, scenario):
    each.SCHEMA_FILE.write_text(f"{each.schema_text()}\n")
