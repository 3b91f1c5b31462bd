"""The report: results files of runs in, tables, figures and one self-contained page out.

The path through this folder: `schema` checks a results file, `load` reads run folders, `study` groups runs by
method, `quantities` names what is measured, `significance` compares, `tables` lays out, `formats` writes them as
Markdown, CSV, LaTeX; `paper` and `claims` hold the published numbers against ours; `page` builds the HTML from
`sections` and `charts`; `figures` draws the picture for a README.
"""
