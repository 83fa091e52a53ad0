"""`kubestow plugin check`: a plugin, tried with generated pods and nodes."""
