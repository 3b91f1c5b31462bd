"""Batched image operations and what is built from them. Each takes images and a generator, and never writes to them."""
