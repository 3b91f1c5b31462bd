"""The report: results files of runs in; tables, figures and one self-contained page out.

The path through this folder: `load` reads run folders; in `analysis`, `study` groups runs by method, `quantities` names
what is measured, `significance` compares, `tables` lays out, `paper` and `claims` hold the published numbers against
ours; `text` writes tables as Markdown, CSV and LaTeX, `html` the page; `figures` and `plot` draw with matplotlib;
`make` does all of it for paths.
"""
