"""`kubestow conformance`: recorded decisions of kube-scheduler, replayed."""
