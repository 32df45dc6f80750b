"""``python -m connector.native``: builds the kernel, where there is a C compiler."""

from connector.native.build import main

main()
