"""The course in JupyterLab: the settings that a reader gets, and a working copy."""
