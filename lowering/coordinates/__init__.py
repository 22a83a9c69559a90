"""Coordinates: from a group of graph ops to one coordinate kernel.

`elements` asks the ops for the element at a coordinate, back to the inputs; `simplify` keeps coordinates short; `axes`
orders and merges axes; `rows` numbers what is left, so that equal kernels are found before any IR is built; `build`
makes the IR.
"""
