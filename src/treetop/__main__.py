"""``python -m treetop``."""

from treetop.cli.main import main

main()
