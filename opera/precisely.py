"""Importing this module sets the environment variables that oneDNN reads once, when PyTorch is loaded.

It is the first that workers preload. It has an effect on import, and so is none of what a user's own process imports.
"""

import os

from opera import precision

os.environ.update(precision.ONEDNN)
