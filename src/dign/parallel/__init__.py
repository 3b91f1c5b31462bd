"""Several processes and devices: launching, the team, Fabric, synchronized batch norm."""
