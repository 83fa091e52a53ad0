"""HTTP servers that filter, score, bind and preempt for the scheduler (spec 04 §13).

`chain` has the rules by which several of them are combined, `http_extender` is one of them behind
a URL, `codec` the JSON of requests and answers, `post` one request with a timeout.

A scheduling cycle waits for its extenders and blocks the event loop meanwhile, as upstream: the
cluster must not change during a decision. Only binding waits beside the loop.
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
