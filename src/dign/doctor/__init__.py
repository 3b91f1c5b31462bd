"""What dign sees of this machine, and a self-test of its devices."""
