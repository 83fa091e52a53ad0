"""Writes the JSON Schemas of explanations and scenarios, and the words that shells complete; tests
compare them with the structs and the commands."""

from kubestow.service.completion import table
from tools.schemas import explanation, scenario

for each in (explanation, scenario):
    each.SCHEMA_FILE.write_text(f"{each.schema_text()}\n")
table.TABLE_FILE.write_text(table.table_text())
