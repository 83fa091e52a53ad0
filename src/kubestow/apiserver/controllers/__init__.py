"""Controllers that delete what has to go: dependents of deleted objects, ending namespaces."""
