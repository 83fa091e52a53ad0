"""Arbitrary input for every decoder and parser: a clear error or a well-formed result, always.

`python -m tools.fuzz --inputs 1000000` (make fuzz) runs as many inputs as asked and
prints each new failing one, made as small as possible. `tests/tools/fuzz` runs a few hundred of
each target, and every input that ever failed (`corpus`). Needs hypothesis.
"""
