"""Controllers that delete dependents of deleted objects, and the content of namespaces."""
