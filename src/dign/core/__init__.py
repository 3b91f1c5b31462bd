"""What everything else imports: errors, checks, files, locks, seeds, pixels, divergences."""
