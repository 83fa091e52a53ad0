"""Regular expressions in RE2's notation that take linear time.

Patterns come from clients: in the selectors of devices (`cel`) and in the schemas of custom
resources (`apiserver.custom`). Python's engine can take exponential time for some of them.

tree        what a pattern consists of
parser      text to tree, with the errors of Go's package regexp
characters  classes of characters, with and without regard to case
program     tree to states
pattern     states over texts

Not supported, and refused: lookaround and backreferences, as by RE2, and scripts (`\\p{Greek}`).
"""

from kubestow.linear_regex.pattern import Pattern, compiled
from kubestow.linear_regex.tree import PatternError

__all__ = ["Pattern", "PatternError", "compiled"]
