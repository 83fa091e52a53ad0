"""Small controllers of an embedded cluster: they turn workloads into pods.

Each follows its objects through watches and acts on changes; nothing polls, so they run in virtual
time as they run in real time. They implement the common rules, not every field.
"""
