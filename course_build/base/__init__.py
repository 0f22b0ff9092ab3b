"""What every room stands on: files, settings, findings, processes."""
