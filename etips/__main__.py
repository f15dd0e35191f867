"""`python -m etips` is the command `etips`."""

from etips.cli.main import main

main()
