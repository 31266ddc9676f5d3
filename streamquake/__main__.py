"""`python -m streamquake`: the same as the command `streamquake`."""

from streamquake.harness.cli import main

if __name__ == "__main__":
    main()
