"""Reports of a run: figures, tables and charts, as a page, pictures, data files and data frames.

`figures` has the definition of each derived number, `tables` the rows as columns, `charts` one
specification per chart, `html` the page, `files` what is written for a file name, `frames` data
frames. Charts, Parquet and data frames need the optional extra `reports` (`extra`).
"""
