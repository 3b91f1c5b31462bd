"""Many runs: a grid file says which, an engine carries them out, each in an ordinary run folder.

`plan` reads the file, `job` does one run, `engines` do many at once, `drive` ties them together, `view` shows it.
"""
