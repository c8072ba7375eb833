"""A run over many machines: one pool a node, joined by Ray; see docs/cluster.md."""
