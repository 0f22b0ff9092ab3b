"""What is true of prose in any language: blocks, formulas, numerals, words, the glossary."""
