"""What everything stands on: errors, checks, files, seeds, pixels, divergences."""
