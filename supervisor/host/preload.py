"""stub"""

from __future__ import annotations


def preload() -> None:
    """stub"""
