"""Measurements: one module per group of questions, inputs made by `fill`.

A measurement states its input, repeats itself and gives its spread; what it is compared
with (an aim, a probe of the disk, the same thing at another size) is measured in the same
run. Nothing here is imported by what is measured.
"""
