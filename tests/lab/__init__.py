"""The notebooks as learners meet them: JupyterLab and Notebook 7 in a real browser."""
