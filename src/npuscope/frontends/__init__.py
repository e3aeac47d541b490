"""How each DSL's launches are caught, how their arguments bind and how their IR is obtained: one file a DSL."""
