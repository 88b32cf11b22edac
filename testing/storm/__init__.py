"""A storm: many inferences on real workers while everything around them breaks, and then the invariants.

`make soak` runs `python -m testing.storm`; the tests run a short one.
"""
