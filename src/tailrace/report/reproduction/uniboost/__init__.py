"""Figures and page of the study of UniBoost (arXiv 2606.18431)."""

from .layout import page
from .plots import figures

__all__ = ["figures", "page"]
