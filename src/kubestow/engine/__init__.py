"""The loop: cluster events in, decisions out.

Handlers turn events into changes of cache and queue; a scheduling cycle is a plain function that
never awaits; a binding cycle is a task that makes the API server agree. Each attempt yields one
decision, the only source for messages, conditions, metrics and explanations.
"""
