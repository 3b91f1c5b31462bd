"""Measuring a model, clean and under corruptions, and the results file."""
