"""The report's tables as text."""
