"""`python -m etips` is the command `etips`."""

from etips.cli.entry import main

main()
