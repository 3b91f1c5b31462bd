"""Certificates by randomized smoothing: how far an image may be pushed before the answer can change."""

from dign.certification.bounds import certified_radius, largest_radius, lower_confidence_bound
from dign.certification.smoothing import Certificates, Smoothed, certify, smoothed

__all__ = [
    "Certificates",
    "Smoothed",
    "certified_radius",
    "certify",
    "largest_radius",
    "lower_confidence_bound",
    "smoothed",
]
