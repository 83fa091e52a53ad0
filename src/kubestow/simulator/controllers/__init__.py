"""Small controllers that make an embedded cluster feel like one: they turn workloads into pods.

Each follows its objects through watches and acts on what changed; nothing polls, so they run in
virtual time as they run in real time. They know the rules people rely on, not every field there is.
"""
