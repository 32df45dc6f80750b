"""Commands of `scylla-cdc` that come with the embedded servers; the frame finds them by their entry points."""
