"""CQL native protocol, versions 3 and 4: frames, primitive values, requests, responses, compression. Knows no storage."""
