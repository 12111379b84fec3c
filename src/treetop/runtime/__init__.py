"""Where the work is done: threads, devices, progress and files."""

from treetop.runtime.runtime import Runtime

__all__ = ["Runtime"]
