"""`python -m npuscope.cli.dyno`."""

from npuscope.cli.dyno.command import main

main()
