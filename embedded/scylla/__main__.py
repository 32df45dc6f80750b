"""`python -m embedded.scylla`: the embedded server in the foreground."""

import sys

from embedded.scylla.main import main

sys.exit(main())
