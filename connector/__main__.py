"""`python -m connector` is `scylla-cdc`."""

from connector.cli.main import main

if __name__ == "__main__":
    main()
