"""LaTeX text of tables: booktabs rules, everything escaped that TeX would read as a command."""

from collections.abc import Sequence
from dataclasses import dataclass

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "\u2212": "$-$",
    "\u00b1": r"$\pm$",
    "\u00d7": r"$\times$",
    "\u2248": r"$\approx$",
    "\u2013": "--",
    "\u2014": "---",
    "\u00a0": "~",
}


@dataclass(frozen=True)
class Heading:
    """A heading over one column, or over several with headings of their own below."""

    title: str
    below: tuple[str, ...] = ()
    words: bool = False

    @property
    def columns(self) -> int:
        """Return how many columns it spans."""
        return len(self.below) or 1


def escaped(text: str) -> str:
    """Return the text as LaTeX prints it; a bracket at its start is no argument of the row before."""
    plain = "".join(SPECIAL.get(letter, letter) for letter in text.replace("\n", " "))
    return f"{{{plain[0]}}}{plain[1:]}" if plain[:1] in ("[", "*") else plain


def latex_table(
    headings: Sequence[Heading], rows: Sequence[Sequence[str]], caption: str, label: str
) -> str:
    """Return a table float; it needs `booktabs`, and its cells are plain text."""
    alignment = "".join(("l" if h.words else "r") * h.columns for h in headings)
    body = [f"{' & '.join(escaped(cell) for cell in row)} \\\\" for row in rows]
    lines = [
        "% needs \\usepackage{booktabs}; the file is UTF-8",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{escaped(caption)}}}",
        f"\\label{{{label}}}",
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        *_heading_rows(headings),
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _heading_rows(headings: Sequence[Heading]) -> list[str]:
    if not any(heading.below for heading in headings):
        return [f"{' & '.join(escaped(heading.title) for heading in headings)} \\\\"]
    above, rules, below, first = [], [], [], 1
    for heading in headings:
        last = first + heading.columns - 1
        if heading.below:
            above.append(f"\\multicolumn{{{heading.columns}}}{{c}}{{{escaped(heading.title)}}}")
            rules.append(f"\\cmidrule(lr){{{first}-{last}}}")
            below += [escaped(title) for title in heading.below]
        else:
            above.append("")
            below.append(escaped(heading.title))
        first = last + 1
    return [f"{' & '.join(above)} \\\\", "".join(rules), f"{' & '.join(below)} \\\\"]
