"""Follow a public chain without a node: fetch the state it needs from upstreams, and prove it."""
