"""HTTP servers that filter, score, bind and preempt for the scheduler (spec 04 §13).

`chain` has the rules by which several of them are combined, `http_extender` is one of them behind
a URL, `codec` the JSON of requests and answers, `post` one request with a timeout.

A scheduling cycle waits for its extenders, and decides as if it had not: the event loop goes on
meanwhile, but changes of the cluster wait for the end of the cycle (`engine.waiting_cycle`). In
virtual time, and where a caller decides by hand, the loop stands still. Binding runs in a thread.
"""

from kubestow.engine.extenders.chain import Extender, ExtenderChain, FilterAnswer, HostScore
from kubestow.engine.extenders.http_extender import HttpExtender, extender_chain

__all__ = (
    "Extender",
    "ExtenderChain",
    "FilterAnswer",
    "HostScore",
    "HttpExtender",
    "extender_chain",
)
