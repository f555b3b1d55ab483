"""Remake the surface files of destrieux160; `python build.py --help` says how."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cvu_surfaces import main

if __name__ == "__main__":
    main(Path(__file__).resolve().parent, annotation="aparc.a2009s")
