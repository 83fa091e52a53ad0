"""`kubestow rebalance`: which pods to evict so that a cluster is placed better, with the proof."""
