"""`python -m npuscope`."""

from npuscope.cli.main import main

if __name__ == "__main__":
    main()
