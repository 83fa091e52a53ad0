"""Which pods each plugin of the descheduler chooses, one module for each kind of reason."""
