"""Pages of prose and links: welcome, glossary, readmes."""
