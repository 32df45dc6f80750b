"""CQL text to syntax trees: lexer, syntax tree, parser. Knows no schema."""
