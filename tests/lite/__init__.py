"""The try-out for the browser, without a browser: `make lite` proves it in one."""
