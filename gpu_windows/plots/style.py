"""Colours and settings of Matplotlib that our pictures share.

Colours are told apart by readers with any kind of colour vision (Okabe and Ito's set for keys).
"""

from __future__ import annotations

from typing import Any

#: Colours for keys, after Okabe and Ito, "Color Universal Design" (2008).
KEY_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
#: Colours of text, faint text, rules, shaded areas and paper.
INK, FAINT, RULE, SHADE, PAPER = "#22252a", "#6b7078", "#d9d8d3", "#d3d6da", "#ffffff"
#: Matplotlib settings for all of our plots; use with `matplotlib.rc_context`.
STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": RULE,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}
