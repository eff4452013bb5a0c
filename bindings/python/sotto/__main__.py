"""`python -m sotto …` is `sotto …`."""

from ._program import main

main()
