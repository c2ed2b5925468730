"""Follow a public chain without a node of it: state in part, fetched from upstreams and proven."""
