"""The modules as slides: one deck a module and language, shown by reveal.js, all offline."""
