"""Benchmarks: of the engine here, of requests in `rpc`, of pre-confirmations in `preconf`.

A benchmark states its input, repeats itself and reports its spread; what it is compared with
(an aim, a probe of the disk, another size) is measured in the same run. Measured code imports
nothing from here.
"""
