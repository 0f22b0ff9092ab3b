"""Module 4's first stage as a try-out that runs in a browser, without a server and offline."""
