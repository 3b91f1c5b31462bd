"""One file per data source."""
