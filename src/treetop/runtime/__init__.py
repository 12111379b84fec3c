"""The machine: threads, devices, progress, files and optional packages."""

from treetop.runtime.runtime import Runtime

__all__ = ["Runtime"]
