"""`python -m brainlsap` is the command line."""

import sys

from brainlsap.cli import main

sys.exit(main())
