"""`teo report`: everything that results/ holds, as one page of HTML and one of Markdown."""
