"""Writes the JSON Schemas of explanations, scenarios and placement tests, and the words that shells
complete; tests compare them with the structs and the commands."""

from kubestow.service.completion.table import TABLE_FILE
from tools.schemas import explanation, placement_test, scenario
from tools.schemas.words import table_text

for each in (explanation, placement_test, scenario):
    each.SCHEMA_FILE.write_text(f"{each.schema_text()}\n")
TABLE_FILE.write_text(table_text())
