"""The queue of v1.9: first in, first out, and how long a failed pod waits."""
