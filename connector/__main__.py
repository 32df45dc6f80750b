"""`python -m connector` is `scylla-cdc`."""

from connector.cli.start import main

if __name__ == "__main__":
    main()
