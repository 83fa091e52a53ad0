"""The loop: cluster events in, decisions out.

Handlers turn events into changes of cache and queue; a scheduling cycle is a plain function that
never awaits; a binding cycle is a task that writes the binding to the API server. Each attempt
yields one decision, the only source for messages, conditions, metrics and explanations.
"""
