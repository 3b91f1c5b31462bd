"""Benchmark folders: read, write, manifest."""
