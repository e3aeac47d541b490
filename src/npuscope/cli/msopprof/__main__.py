"""``python -m npuscope.cli.msopprof`` is the `msopprof` command."""

from npuscope.cli.msopprof.main import main

main()
