"""What a run is: its configuration, folder, checkpoints, and the trained classifier in it."""
