"""Helpers behind HTTP that filter, score, bind and preempt with the scheduler (spec 04 §13).

`chain` has the rules by which several of them work together, `http_extender` is one of them behind
a URL, `codec` the JSON both sides speak, `post` a request that ends in time.

A scheduling cycle waits for its extenders, and nothing else runs meanwhile, as it is upstream: the
decision must not be overtaken by what happens in the cluster. Only binding waits beside the loop.
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
