"""Runs the scheduler of a recording again, and compares its decisions.

client       answers requests as the recording says
replay       applies the records in virtual time
report       what was compared, and what differed; why   what made the difference

Decisions of another scheduler, of which only bindings and conditions are seen:

agreement    decides on the same pods; writes, known   what that scheduler knew, in order
search       what it may have known instead
judging      compares one decision; plugin_parts, agreement_report   what all of them say
"""
