"""ProServe's page: what is compared and the headline first, then figures, ablations and claims."""

from .layout import page
from .plots import figures

__all__ = ["figures", "page"]
