"""CQL native protocol, versions 3 and 4: frames, primitives, requests, responses, compression. Knows no storage."""
