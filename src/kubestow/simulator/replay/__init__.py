"""Runs the scheduler of a recording again, and compares its decisions.

client       answers requests as the recording says
replay       applies the records in virtual time
agreement    compares with the bindings of another scheduler
report       what was compared, and what differed
"""
