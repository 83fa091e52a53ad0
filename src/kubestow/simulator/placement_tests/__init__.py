"""Placement as a test: a cluster, what happens to it, and what must hold then.

    file ── reading, matrix ──► case ──► placed cluster ── judge ──► verdicts
                                             └── forEach: a copy for each failure ──┘

document     the YAML form, as structs
reading      files to tests; errors have file, line, field and near match
cases        what is run: one combination of the matrix
state        the running cluster of a case
judged       what a judge reads of it, or of a real one
judge        one function for each kind of expectation
for_each     what happens to every node or domain in turn
running      cases to results; `forks` has the processes
results      what came of it, as data; `reports` has JUnit, GitHub and Markdown
against      two states of the manifests, side by side
"""
