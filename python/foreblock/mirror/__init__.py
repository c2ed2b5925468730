"""A dev chain that mirrors another chain, the real one, with local transactions on top.

`docs/design/forking.md` describes it. The real chain is followed in the same process, in a store of
its own; `mirrored_state` finds state there, `mirror_source` takes its blocks over.
"""
