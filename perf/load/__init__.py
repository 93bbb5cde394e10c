"""Offer load and bring back what was measured.

`spec` is all that an engine is given; `engines` starts one as a process of its own, `handover` and
`offer` bring the order to client hosts and the results back. `engine/` is the engine in Python,
`native/` the one in Rust; `results/` turns what an engine wrote into samples; `selftest/` plants
known answer times and compares.
"""
