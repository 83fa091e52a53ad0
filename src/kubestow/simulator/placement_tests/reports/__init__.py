"""Reports of placement tests for other programs: JUnit, GitHub, Markdown."""
