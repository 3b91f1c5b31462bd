"""dign: image classifiers that keep their accuracy, and know when they are unsure, under unseen corruptions."""

__version__ = "0.1.0"
