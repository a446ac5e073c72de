"""Figures and page of the study of quota-based aging (arXiv 2610.17795)."""

from .layout import page
from .plots import figures

__all__ = ["figures", "page"]
