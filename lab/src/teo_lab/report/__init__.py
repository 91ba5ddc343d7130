"""`teo-lab report`: everything that lab/results holds, as one page of HTML and one of Markdown."""
