"""Explore, prove, simulate and sweep a model; verdicts and traces."""
